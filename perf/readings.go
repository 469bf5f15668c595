package perf

import (
	"cmp"
	"context"
	"slices"

	"tuner/measure"
	"tuner/runner/meter"
)

// readings collects the readings of a gauge at the edges of a load's windows.
type readings struct {
	gauge  Gauge
	list   []meter.Reading // by edge
	failed error           // error that ended the list early
	clock  float64         // Hz, of the first window passed to latest; 0: none, or unknown
}

// edge takes one more reading. After a failure it takes no more: a server without statistics may
// still serve the model. If the server has gone, the load reports it better.
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

// complete returns the windows completed by the readings.
func (r *readings) complete(windows []measure.Window) []measure.Window {
	if len(r.list) == 0 {
		return slices.Clone(windows)
	}
	return meter.Fill(0, windows, r.list)
}

// latest returns the window that has just ended, completed by the readings at its edges. It drops
// earlier readings, since a load without an end would collect more and more.
func (r *readings) latest(w measure.Window) measure.Window {
	if len(r.list) < 2 { // the end of the window could not be read
		return w
	}
	from, to := r.list[0], r.list[1]
	r.clock = cmp.Or(r.clock, to.Frequency)
	r.list = append(r.list[:0], to)
	return meter.Complete(0, w, from, to, r.clock)
}

// memory returns the peak resident set of the server's process in bytes. 0: unknown.
func (r *readings) memory() int64 {
	var peak int64
	for _, reading := range r.list {
		peak = max(peak, reading.Memory)
	}
	return peak
}

// composing returns the figures of each model that an ensemble calls, in the last windows of all.
// It is nil if there are no readings of them.
func (r *readings) composing(last, all int) []Composing {
	if len(r.list) <= all {
		return nil
	}
	var list []Composing
	for _, part := range meter.Composed(r.list[all-last].Of(0), r.list[all].Of(0)) {
		list = append(list, Composing{Model: part.Name, Version: part.Version, Server: part.ServerStats})
	}
	return list
}
