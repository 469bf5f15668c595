package sidebyside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"tuner/lab/peers"
	"tuner/lab/program"
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

// Define defines -what, which names one of them, or All.
func (p Parts[B]) Define(f *program.Flags, what *string) {
	f.Choice(what, "what", All, p.Names(), "which part")
}

// Setting is where a benchmark runs.
type Setting struct {
	What          string // the part
	Record        string // file for every single figure; "" for none
	Out, Messages io.Writer
}

// RunBeside runs the part that the setting names, or all, beside the installed peers. It first
// prints what machine this is. open makes what the parts need from the peers and the record.
func (p Parts[B]) RunBeside(ctx context.Context, s Setting, open func(installed *peers.Peers, record io.Writer) B) (err error) {
	installed, err := peers.Find()
	if err != nil {
		return err
	}
	record, err := CreateRecord(s.Record)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, record.Close()) }()
	fmt.Fprintln(s.Out, Machine(ctx))
	return p.Run(ctx, s.What, open(installed, record), s.Messages)
}

// Run runs the part of that name, or all until the context ends, and tells how long each took. If
// one fails, the others still run.
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

// attempts is how often a measurement may be tried: on a busy machine perf_analyzer sometimes
// hangs, or sees nothing complete.
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
