package runner

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/api"
	"tuner/measure"
)

// batches returns two requests of a size.
func batches(size int) Batches {
	request := api.InferRequest{Model: "m", Inputs: []api.Tensor{{Name: "x", Shape: []int64{int64(size), 3}}}}
	return Batches{size, Requests{request, request}}
}

// curveJob returns a job for the service times of sizes at concurrency 2, in windows of 200 ms.
func curveJob(sizes ...int) Job {
	j := job("a", "1")
	j.Load.Concurrency, j.Window, j.Windows, j.Requests = 2, 200*ms, len(sizes), nil
	for _, size := range sizes {
		j.ServiceCurve = append(j.ServiceCurve, batches(size))
	}
	return j
}

func TestServiceCurve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		l.row = 10 * ms // a request of n rows takes (10 + 10 n) ms
		m, err := r.Measure(t.Context(), curveJob(1, 4, 30))
		if err != nil || m.Failure != nil || len(m.Windows) != 3 || m.Launch != 1 {
			t.Fatalf("%d windows, launch %d, %+v, %v", len(m.Windows), m.Launch, m.Failure, err)
		}
		// 10 batches of 20 ms take the requested length; 10 of 50 ms take 500 ms. Of 310 ms, 3 ×
		// 200 ms do not hold two, so the length is 620 ms.
		for i, want := range []struct {
			size          int
			batch, length time.Duration
		}{{1, 20 * ms, 200 * ms}, {4, 50 * ms, 500 * ms}, {30, 310 * ms, 620 * ms}} {
			w := m.Windows[i]
			if d := w.Duration - want.length; d < -10*ms || d > 10*ms { // latencies of a histogram are rounded
				t.Errorf("the window of batches of %d lasts %v, want %v", want.size, w.Duration, want.length)
			}
			s := w.Server
			if s.Requests < 2 || s.Executions != s.Requests || s.Inferences != want.size*s.Requests || w.Inferences != want.size*w.Requests {
				t.Errorf("batches of %d: %d requests, %d inferences; the server says %+v", want.size, w.Requests, w.Inferences, s)
			}
			n := time.Duration(s.Requests)
			if s.Queue+s.ComputeInfer != n*want.batch {
				t.Errorf("%d batches of %d took %v, want %v each", n, want.size, s.Queue+s.ComputeInfer, want.batch)
			}
			only := []measure.BatchStat{{Size: want.size, Executions: s.Executions, ComputeInfer: s.ComputeInfer}}
			if diff := cmp.Diff(only, s.Batches); diff != "" {
				t.Errorf("executed batches (-want +got):\n%s", diff)
			}
			if slices.Contains(w.Flags, measure.FlagFew) || slices.Contains(w.Flags, measure.FlagUnsteady) {
				t.Errorf("batches of %d: flags %v", want.size, w.Flags)
			}
		}
		// Three batches of each size run before its window.
		if got, want := m.Times.WarmUp, 3*(20+50+310)*ms; got != want {
			t.Errorf("warm-up of %v, want %v", got, want)
		}
		if got := m.Times.Windows; got < 1300*ms || got > 1340*ms {
			t.Errorf("windows of %v, want 1.32 s", got)
		}
		// The next trial uses the same process and configuration.
		next, err := r.Measure(t.Context(), job("a", "1"))
		if err != nil || next.Failure != nil || next.Launch != 1 || len(l.loads) != 1 || len(next.Windows) != 2 {
			t.Errorf("then: launch %d, %d loads, %d windows, %+v, %v", next.Launch, len(l.loads), len(next.Windows), next.Failure, err)
		}
	})
}

// A service job that fails returns the windows measured before, since smaller batches may work
// well.
func TestServiceCurveFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		l.send = func(e *engine, n int) error {
			if n == 60 { // in the window of the second size
				e.die(Exit{Text: "signal: killed", OutOfMemory: true})
			}
			return nil
		}
		m, err := r.Measure(t.Context(), curveJob(1, 2, 4))
		if err != nil || m.Failure == nil || m.Failure.Stage != measure.StageMemory || len(m.Windows) != 1 || m.Windows[0].Inferences != m.Windows[0].Requests || m.Times.Windows < 200*ms {
			t.Errorf("%d windows, times %+v, failure %+v, %v", len(m.Windows), m.Times, m.Failure, err)
		}
	})
}

// The memory after each size shows how much a configuration needs that makes no larger batches.
func TestServiceCurveTellsTheMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		j := curveJob(1, 2, 4)
		if _, err := r.launch(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		l.last().pid = os.Getpid() // a process that certainly has memory
		m, err := r.Measure(t.Context(), j)
		if err != nil || len(m.Windows) != 3 {
			t.Fatalf("%d windows, %v", len(m.Windows), err)
		}
		for i, w := range m.Windows { // this process may have returned some of it meanwhile
			if w.Memory < 1e6 || w.Memory > 2*m.Memory {
				t.Errorf("after window %d: %d bytes, in the end %d", i+1, w.Memory, m.Memory)
			}
		}
	})
}

// Sizes that ServiceCurveEnds leaves out are not a failure.
func TestServiceCurveEndsWhereTheJobSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, r := newLab(t)
		j := curveJob(1, 2, 4)
		upTo := func(most int) func([]time.Duration) bool {
			return func(batches []time.Duration) bool {
				if slices.Min(batches) <= 0 {
					t.Errorf("batches took %v", batches)
				}
				return len(batches) == most
			}
		}
		for _, c := range []struct {
			ends func([]time.Duration) bool
			want int
		}{{nil, 3}, {upTo(1), 1}, {upTo(2), 2}, {upTo(4), 3}} {
			j.ServiceCurveEnds = c.ends
			m, err := r.Measure(t.Context(), j)
			if err != nil || m.Failure != nil || len(m.Windows) != c.want {
				t.Errorf("%d windows, want %d; %+v, %v", len(m.Windows), c.want, m.Failure, err)
			}
		}
	})
}

func TestServiceWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ batch, want time.Duration }{
		"as asked":                  {5 * ms, 200 * ms},
		"10 batches":                {40 * ms, 400 * ms},
		"three times what is asked": {200 * ms, 600 * ms},
		"two batches at least":      {2 * time.Second, 4 * time.Second},
	} {
		if got := serviceWindow(200*ms, c.batch); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	// Each client has two batches in each step of the ramp, and then one that tells the window's length.
	a := brief(Job{Load: measure.Load{Concurrency: 3, BatchSize: 1}, Window: ms})
	if got := 2*len(a.ramp) + a.requests/3 + int(a.length(time.Second, 0)/time.Second); got != measure.ServiceBatches {
		t.Errorf("a client has %d batches of a size at least, want %d", got, measure.ServiceBatches)
	}
}
