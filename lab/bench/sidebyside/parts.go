package sidebyside

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// All stands for every part of a benchmark.
const All = "all"

// Part is one of a benchmark's parts; B is what all of them need.
type Part[B any] struct {
	Name string
	Run  func(b B, ctx context.Context) error
}

// Parts are a benchmark's parts in the order in which they run.
type Parts[B any] []Part[B]

// Names are those of the parts, and All.
func (p Parts[B]) Names() []string {
	var names []string
	for _, part := range p {
		names = append(names, part.Name)
	}
	return append(names, All)
}

// Flag defines -what, which names one of them, or All.
func (p Parts[B]) Flag(flags *flag.FlagSet, what *string) {
	flags.StringVar(what, "what", All, "which part: "+strings.Join(p.Names(), ", "))
}

// Check is the error of a name that none of them has.
func (p Parts[B]) Check(what string) error {
	if allowed := p.Names(); !slices.Contains(allowed, what) {
		return fmt.Errorf("-what %q: allowed are %s", what, strings.Join(allowed, ", "))
	}
	return nil
}

// Run runs the part of that name, or all until the context ends, and tells how long each took. One that fails keeps none of the
// others from running.
func (p Parts[B]) Run(ctx context.Context, name string, b B, messages io.Writer) error {
	var failed error
	for _, part := range p {
		if name != All && name != part.Name || ctx.Err() != nil {
			continue
		}
		begin := time.Now()
		if err := part.Run(b, ctx); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", part.Name, err))
		}
		fmt.Fprintf(messages, "%s took %v\n", part.Name, time.Since(begin).Round(time.Second))
	}
	return failed
}

// attempts is how often a measurement may be tried: on a busy machine perf_analyzer sometimes hangs, or sees nothing complete.
const attempts = 3

// Retry repeats a measurement that fails, unless the context has ended.
func Retry[T any](ctx context.Context, messages io.Writer, name string, measure func() (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		m, err := measure()
		if err == nil || ctx.Err() != nil || attempt == attempts {
			return m, err
		}
		fmt.Fprintf(messages, "%s, attempt %d: %v\n", name, attempt, err)
	}
}
