package perf

import (
	"cmp"
	"context"
	"slices"

	"tuner/measure"
	"tuner/runner/meter"
)

// readings collects what a gauge says at the edges of a load's windows.
type readings struct {
	gauge  Gauge
	list   []meter.Reading // by edge
	failed error           // why the list ends early
	clock  float64         // Hz, of the first window that latest was given; 0: none, or unknown
}

// edge reads once more. A reading that fails is the last: a server that does not tell its statistics may serve all the
// same, and one that is gone is better told of by the load.
func (r *readings) edge(ctx context.Context) {
	if r.failed != nil {
		return
	}
	reading, err := r.gauge.Read(ctx)
	if err != nil {
		r.failed = err
		return
	}
	r.list = append(r.list, reading)
}

// join follows windows that were joined in pairs.
func (r *readings) join() { r.list = meter.Join(r.list) }

// complete returns the windows with what the readings tell of them.
func (r *readings) complete(windows []measure.Window) []measure.Window {
	if len(r.list) == 0 {
		return slices.Clone(windows)
	}
	return meter.Fill(windows, r.list)
}

// latest returns the window that has just ended, with what the readings at its edges tell of it. Earlier readings are not kept: a load without
// an end would have ever more of them.
func (r *readings) latest(w measure.Window) measure.Window {
	if len(r.list) < 2 { // the window's end could not be read
		return w
	}
	from, to := r.list[0], r.list[1]
	r.clock = cmp.Or(r.clock, to.Frequency)
	r.list = append(r.list[:0], to)
	return meter.Complete(w, from, to, r.clock)
}

// memory is the peak resident set of the server's process, in bytes; 0 unknown.
func (r *readings) memory() int64 {
	var peak int64
	for _, reading := range r.list {
		peak = max(peak, reading.Memory)
	}
	return peak
}

// composing is what each of the models that an ensemble calls did in the last windows of all. It is nil when the readings do
// not tell.
func (r *readings) composing(last, all int) []Composing {
	if len(r.list) <= all {
		return nil
	}
	var list []Composing
	for _, part := range meter.Composed(r.list[all-last], r.list[all]) {
		list = append(list, Composing{Model: part.Name, Version: part.Version, Server: part.ServerStats})
	}
	return list
}
