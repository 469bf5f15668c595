package perf

import (
	"context"
	"testing"
	"time"

	"tuner/internal/testserver"
	"tuner/measure"
	"tuner/runner/meter"
)

// counter is a gauge. Its n-th reading has n² µs of this process's CPU time, and a clock of n GHz.
type counter struct{ n int }

func (c *counter) Read(context.Context) (meter.Reading, error) {
	c.n++
	return meter.Reading{Client: time.Duration(c.n*c.n) * time.Microsecond, Frequency: float64(c.n) * 1e9}, nil
}

// The load on another model runs as long as there are levels. Each of its windows is completed
// once. Neither windows of earlier levels nor readings pile up.
func TestOtherKeepsOneLevel(t *testing.T) {
	t.Parallel()
	o := &other{begun: time.Now(), readings: readings{gauge: new(counter)}}
	all := others{o}
	o.readings.edge(t.Context())
	at := time.Duration(0)
	for level := range 3 {
		all.forget()
		from := o.begun.Add(at)
		for range 4 {
			o.readings.edge(t.Context())
			o.addWindow(measure.Window{Start: at, Duration: time.Second, Requests: 10})
			at += time.Second
		}
		windows := o.between(from, o.begun.Add(at)).Windows
		if len(windows) != 4 || len(o.windows) != 4 || len(o.readings.list) != 1 {
			t.Fatalf("level %d: %d windows, %d are kept, and %d readings", level, len(windows), len(o.windows), len(o.readings.list))
		}
		for i, w := range windows {
			// Window n, from 1, lies between the readings n and n+1: (n+1)² − n² µs. The clock of
			// the first is 2 GHz.
			n := 4*level + i + 1
			if w.ClientCPU != time.Duration(2*n+1)*time.Microsecond || w.Frequency != float64(n+1)/2 {
				t.Errorf("window %d: %v of CPU time, the clock %v times the first one's", n, w.ClientCPU, w.Frequency)
			}
		}
	}
}

// A window that ended before a level belongs to no later level.
func TestLevelForgetsEarlierWindows(t *testing.T) {
	t.Parallel()
	other := &other{begun: time.Now(), windows: make([]measure.Window, 3)}
	r := &run{options: counting(target(t, testserver.Options{}), 10), others: others{other}}
	if _, err := r.measureLevel(t.Context(), 1); err != nil || len(other.windows) != 0 {
		t.Errorf("%d windows of the load beside it are kept, %v", len(other.windows), err)
	}
}

// If the statistics can no longer be read, the windows are kept without them.
func TestOtherWithoutReadings(t *testing.T) {
	t.Parallel()
	o := &other{begun: time.Now(), readings: readings{gauge: blind{context.DeadlineExceeded}}}
	o.readings.edge(t.Context())
	for i := range 3 {
		o.readings.edge(t.Context())
		o.addWindow(measure.Window{Start: time.Duration(i) * time.Second, Duration: time.Second, Requests: 10})
	}
	if n, _ := requests(o.between(o.begun, o.begun.Add(time.Minute))); n != 30 {
		t.Errorf("%d requests, want 30", n)
	}
}
