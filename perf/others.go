package perf

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tuner/measure"
	"tuner/measure/arrivals"
	"tuner/runner/load"
)

// others are the loads on further models.
type others []*other

// other is the load on one of them. Its own clock cuts its windows. They belong to the level during
// which they were measured.
type other struct {
	options  Beside
	begun    time.Time
	steady   chan struct{} // closed when it has warmed up
	readings readings

	mu      sync.Mutex
	windows []measure.Window // complete windows since the current level began
}

// alongside calls f while the loads on the other models run. If one of them fails, f ends with that
// error as the cause.
func (r *run) alongside(ctx context.Context, f func(context.Context) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	loads, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for _, b := range r.options.Beside {
		o := &other{options: b, steady: make(chan struct{}), readings: readings{gauge: b.Target.Gauge}}
		r.others = append(r.others, o)
		running.Go(func() {
			if err := o.run(loads, r.options); loads.Err() == nil {
				fail(fmt.Errorf("the load on the second model %q ended: %w", b.Model, err))
			}
		})
	}
	for _, o := range r.others {
		select {
		case <-o.steady:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return f(ctx)
}

// run keeps the load running until the context ends. It always returns an error.
func (o *other) run(ctx context.Context, run Options) error {
	var schedule load.Arrivals
	var err error
	if o.options.Load.Concurrency == 0 {
		if schedule, err = arrivals.Constant(o.options.Load.RequestRate); err != nil {
			return err
		}
	}
	o.begun = time.Now()
	part := load.Part{
		Load:        o.options.Load,
		Arrivals:    schedule,
		Dial:        o.options.Target.dialer(o.options.Load),
		MaxInFlight: run.MaxInFlight,
		Large:       o.options.Target.IsLarge(),
		Timeout:     run.Timeout,
		Patience:    run.Timeout,
		WarmUp:      run.WarmUp,
	}
	_, err = load.Run(ctx, load.Options{Part: part, Windows: load.Windows{
		Length: func(p99 []time.Duration) time.Duration { return run.Stop.windowLength(p99[0]) },
		Edge: func(ctx context.Context, edge int) error {
			o.readings.edge(ctx)
			if edge == 0 {
				close(o.steady)
			}
			return nil
		},
		More: func(windows [][]measure.Window) bool {
			o.addWindow(windows[0][len(windows[0])-1])
			return true
		},
	}})
	return err
}

// addWindow keeps the window that has just ended.
func (o *other) addWindow(w measure.Window) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.windows = append(o.windows, o.readings.latest(w))
}

// forget drops the windows so far, which end before the next level begins.
func (all others) forget() {
	for _, o := range all {
		o.mu.Lock()
		o.windows = nil
		o.mu.Unlock()
	}
}

// during returns the loads on other models while a level was measured.
func (all others) during(l Level) []Other {
	if len(all) == 0 || len(l.Measurement.Windows) == 0 {
		return nil
	}
	first, last := l.Measurement.Windows[0], l.Measurement.Windows[len(l.Measurement.Windows)-1]
	from, to := l.Begin.Add(first.Start), l.Begin.Add(last.Start+last.Duration)
	var list []Other
	for _, o := range all {
		list = append(list, Other{Model: o.options.Model, Load: o.options.Load, Measurement: o.between(from, to)})
	}
	return list
}

// between returns the windows that lie between two instants.
func (o *other) between(from, to time.Time) measure.Measurement {
	o.mu.Lock()
	defer o.mu.Unlock()
	var m measure.Measurement
	for _, w := range o.windows {
		begin := o.begun.Add(w.Start)
		if !begin.Before(from) && !begin.Add(w.Duration).After(to) {
			m.Windows = append(m.Windows, w)
		}
	}
	return m
}
