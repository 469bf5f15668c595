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

// Part is one of a benchmark's parts. B holds their common inputs.
type Part[B any] struct {
	Name string
	Run  func(b B, ctx context.Context) error
}

// Parts are a benchmark's parts in the order in which they run.
type Parts[B any] []Part[B]

// Names returns the names of the parts, and All.
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

// Setting selects the parts of a benchmark and its files.
type Setting struct {
	What          string // the part
	Record        string // file for every single figure; "" for none
	Out, Messages io.Writer
}

// RunBeside runs the part that the setting names, or all, beside the installed peers. It first
// prints the machine. open makes the inputs of the parts from the peers and the record.
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

// Run runs the part of that name, or all until the context ends, and prints the time of each. If
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

// attempts is the number of tries of a measurement. On a busy machine perf_analyzer sometimes
// hangs, or sees no complete request.
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
