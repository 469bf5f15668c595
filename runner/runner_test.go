package runner

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
)

// A window that was cut is marked and otherwise like any other.
func TestWindowThatShowsEnough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, r := newLab(t)
		j := job("a", "1")
		j.Enough = func(soFar measure.Window) bool { return soFar.Requests < 100 }
		m, err := r.Measure(t.Context(), j)
		if err != nil || m.Failure != nil || len(m.Windows) != 1 || !m.Cut {
			t.Fatalf("%+v, %v", m, err)
		}
		// 4 clients × 50 requests/s.
		if w := m.Windows[0]; w.Duration != 400*ms || w.Requests < 76 || w.Requests > 84 || w.Server.Requests < 76 || w.Server.Requests > 84 || m.Times.Windows != 400*ms {
			t.Errorf("%d requests in %v, the server says %d, times %+v", w.Requests, w.Duration, w.Server.Requests, m.Times)
		}
		if m, err = r.Measure(t.Context(), job("a", "1")); err != nil || m.Cut || len(m.Windows) != 2 {
			t.Errorf("the next: %+v, %v", m, err)
		}
	})
}

func TestMeasurementOfAGoodEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, r := newLab(t)
		time.Sleep(5 * time.Second) // the campaign began earlier
		m, err := r.Measure(t.Context(), job("a", "1"))
		if err != nil || m.Failure != nil || len(m.Windows) != 2 || m.Launch != 1 {
			t.Fatalf("%+v, %v", m, err)
		}
		// 0.3 s to launch, 0.1 s to load.
		if m.Times.Launch != 400*ms || m.Times.Reconfigure != 0 || m.Times.Windows != 2*time.Second || m.Times.WarmUp > 500*ms {
			t.Errorf("times %+v", m.Times)
		}
		if want := 5*time.Second + 400*ms + m.Times.WarmUp; m.Windows[0].Start != want {
			t.Errorf("the first window starts at %v, want %v", m.Windows[0].Start, want)
		}
		w := m.Windows[1]
		// 4 clients × 50 requests/s, each 20 ms, a quarter of it in the queue.
		if w.Requests < 196 || w.Requests > 204 || w.Server.Requests < 196 || w.Server.Requests > 204 {
			t.Errorf("%d requests, the server says %d, want 200", w.Requests, w.Server.Requests)
		}
		n := w.Server.Requests
		want := measure.ServerStats{Requests: n, Inferences: n, Executions: n, Queue: time.Duration(n) * 5 * ms, ComputeInfer: time.Duration(n) * 15 * ms, Success: time.Duration(n) * 20 * ms,
			Batches: []measure.BatchStat{{Size: 1, Executions: n, ComputeInfer: time.Duration(n) * 15 * ms}}}
		if diff := cmp.Diff(want, w.Server); diff != "" {
			t.Errorf("server statistics differ (-want +got):\n%s", diff)
		}
	})
}

func TestEnginesAreKeptAsLongAsTheyFit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		fresh := job("b", "2")
		fresh.Fresh = true
		for i, step := range []struct {
			job            Job
			launch, loads  int // counts so far
			launched, load bool
		}{
			{job("a", "1"), 1, 1, true, false},
			{job("a", "1"), 1, 1, false, false}, // the same job again
			{job("a", "2"), 1, 2, false, true},  // another configuration
			{job("b", "2"), 2, 3, true, false},  // another pool
			{fresh, 3, 4, true, false},
		} {
			m, err := r.Measure(t.Context(), step.job)
			if err != nil || m.Failure != nil {
				t.Fatalf("step %d: %+v, %v", i, m.Failure, err)
			}
			if m.Launch != step.launch || len(l.loads) != step.loads || (m.Times.Launch > 0) != step.launched || (m.Times.Reconfigure > 0) != step.load {
				t.Errorf("step %d: launch %d, %d loads, times %+v", i, m.Launch, len(l.loads), m.Times)
			}
		}
		l.last().die(Exit{})
		if m, err := r.Measure(t.Context(), job("b", "2")); err != nil || m.Failure != nil || m.Launch != 4 {
			t.Errorf("after the engine's end between jobs: launch %d, %+v, %v", m.Launch, m.Failure, err)
		}
		r.Close(t.Context())
		for i, e := range l.engines {
			if e.stops == 0 {
				t.Errorf("engine %d was not stopped", i+1)
			}
		}
	})
}

func TestFailuresAreMeasurements(t *testing.T) {
	t.Parallel()
	die := func(at int, exit Exit) func(*engine, int) error {
		return func(e *engine, n int) error {
			if n == at {
				e.die(exit)
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		spoil  func(*lab)
		stage  measure.Stage
		reason string // part of the reason
		keeps  bool   // the engine keeps running
	}{
		"does not start":            {func(l *lab) { l.startError = &StartError{"not ready"} }, measure.StageStart, "not ready", false},
		"refuses the configuration": {func(l *lab) { l.loadError = errors.New("bad value") }, measure.StageLoad, "bad value", true},
		"loads for ever":            {func(l *lab) { l.loadTakes = time.Hour }, measure.StageHang, "loading the model took more than 2m0s", false},
		"dies while loading": {func(l *lab) {
			l.loadTakes = time.Second
			time.AfterFunc(800*ms, func() { l.last().die(Exit{Text: "signal: aborted"}) })
		}, measure.StageCrash, "the engine ended by itself (signal: aborted); its last output:\nlast words", false},
		"dies in the ramp":     {func(l *lab) { l.send = die(1, Exit{Text: "exit status 1"}) }, measure.StageCrash, "exit status 1", false},
		"dies in a window":     {func(l *lab) { l.send = die(300, Exit{Text: "signal: segmentation fault"}) }, measure.StageCrash, "segmentation", false},
		"is killed for memory": {func(l *lab) { l.send = die(300, Exit{Text: "signal: killed", OutOfMemory: true}) }, measure.StageMemory, "memory ran out", false},
		"gives no statistics":  {func(l *lab) { l.deaf = true }, measure.StageHang, "reading the statistics took more than 10s", false},
		"hangs":                {func(l *lab) { l.service = time.Hour }, measure.StageHang, "completed no request for 2m0", false},
		"hangs in a window": {func(l *lab) {
			l.send = func(_ *engine, n int) error {
				if n > 100 {
					time.Sleep(time.Hour)
				}
				return nil
			}
		}, measure.StageHang, "completed no request for 10", false},
		"refuses everything": {func(l *lab) { l.send = func(*engine, int) error { return errors.New("out of range") } }, measure.StageErrors, "out of range", false},
		"refuses from some time on": {func(l *lab) {
			l.send = func(_ *engine, n int) error {
				if n > 30 {
					return errors.New("broken")
				}
				return nil
			}
		}, measure.StageErrors, "broken", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, r := newLab(t)
				c.spoil(l)
				m, err := r.Measure(t.Context(), job("a", "1"))
				if err != nil || m.Failure == nil || m.Failure.Stage != c.stage || !strings.Contains(m.Failure.Reason, c.reason) {
					t.Fatalf("failure %+v, %v, want stage %q with %q", m.Failure, err, c.stage, c.reason)
				}
				if killed := c.stage == measure.StageHang || c.stage == measure.StageMemory; len(l.engines) > 0 && !c.keeps && l.last().killed != killed {
					t.Errorf("engine killed at once: %t, want %t", l.last().killed, killed)
				}
				if m.Times.Total() == 0 {
					t.Error("it took no time")
				}
				if kept := r.pool != nil; kept != c.keeps {
					t.Errorf("engine kept: %t, want %t", kept, c.keeps)
				}
				*l = lab{service: 20 * ms, engines: l.engines}
				if m, err := r.Measure(t.Context(), job("a", "2")); err != nil || m.Failure != nil {
					t.Errorf("the next job fails too: %+v, %v", m.Failure, err)
				}
			})
		})
	}
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		l.send = func(e *engine, _ int) error { return nil }
		j := job("a", "1")
		if _, err := r.launch(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		l.last().pid = os.Getpid() // a process that certainly has memory
		m, err := r.Measure(t.Context(), j)
		if err != nil || m.Failure != nil || m.Memory < 1e6 {
			t.Fatalf("%d bytes, %+v, %v", m.Memory, m.Failure, err)
		}
		j.MemoryLimit = 1
		m, err = r.Measure(t.Context(), j)
		if err != nil || m.Failure == nil || m.Failure.Stage != measure.StageMemory || m.Memory < 1e6 {
			t.Errorf("%d bytes, %+v, %v", m.Memory, m.Failure, err)
		}
	})
}

// An engine may hold 85 % of what the control group allows, unless twice the limit of its job is less.
func TestGroupLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ group, job, limit, told int64 }{
		"no limit":              {0, 0, 0, 0},
		"twice the job's alone": {0, 25, 50, 0},
		"the group's alone":     {100, 0, 85, 100},
		"the job's is tighter":  {100, 25, 50, 0},
		"the group's is":        {100, 45, 85, 100},
	} {
		r := New(Options{Group: c.group})
		if got := r.limitOf(Job{MemoryLimit: c.job}); got.limit != c.limit || got.group != c.told {
			t.Errorf("%s: %+v", name, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		l.send = func(e *engine, _ int) error { return nil }
		j := job("a", "1")
		if _, err := r.launch(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		l.last().pid = os.Getpid() // a process that certainly has more than a megabyte
		r.options.Group = 1 << 20
		m, err := r.Measure(t.Context(), j)
		if err != nil || m.Failure == nil || m.Failure.Stage != measure.StageMemory || !strings.Contains(m.Failure.Reason, "more than 85 % of the 1 MB that the control group (the container) allows") {
			t.Errorf("%+v, %v", m.Failure, err)
		}
	})
}

// An engine that says that it got no memory has failed for memory, if the kernel refuses it more
// than its share. Where it does not, the engine lacked other memory, such as that of a GPU.
func TestNameMemory(t *testing.T) {
	t.Parallel()
	said := &measure.Failure{Stage: measure.StageErrors, Reason: "all 4 requests failed, the first with: onnx runtime error 6: Failed to allocate memory for requested buffer of size 1073741824"}
	for _, group := range []int64{0, 2e9} {
		if got := New(Options{Group: group}).nameMemory(said); got != said {
			t.Errorf("a control group of %d bytes that refuses nothing: %+v", group, got)
		}
	}
	limited := New(Options{Group: 2e9, Refuses: true})
	got := limited.nameMemory(said)
	if got.Stage != measure.StageMemory || !strings.HasPrefix(got.Reason, "the engine got no more memory; the control group (the container) allows 2000 MB: all 4") {
		t.Errorf("%+v", got)
	}
	if again := limited.nameMemory(got); again != got || limited.nameMemory(nil) != nil {
		t.Errorf("a second time: %+v", again)
	}
	other := &measure.Failure{Stage: measure.StageLoad, Reason: "no such file"}
	if got := limited.nameMemory(other); got != other {
		t.Errorf("another failure: %+v", got)
	}
}

func TestCancelledMeasurementStopsTheEngine(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"while loading": 350 * ms, "in a window": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, r := newLab(t)
				stopped := errors.New("stopped by the user")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(after, func() { cancel(stopped) })
				if _, err := r.Measure(ctx, job("a", "1")); !errors.Is(err, stopped) {
					t.Errorf("ended with %v, want the context's cause", err)
				}
				if l.last().stops == 0 || r.pool != nil {
					t.Error("the engine was left running")
				}
			})
		})
	}
}

func TestSenselessJobsAreTheCampaignsFault(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Job){
		"no load":     func(j *Job) { j.Load = measure.Load{BatchSize: 1} },
		"no windows":  func(j *Job) { j.Windows = 0 },
		"no length":   func(j *Job) { j.Window = 0 },
		"no requests": func(j *Job) { j.Requests = nil },
		"no batches":  func(j *Job) { j.ServiceCurve = []Batches{{Size: 4}} },
		"no size":     func(j *Job) { j.ServiceCurve = []Batches{{Requests: j.Requests}} },
	} {
		l, r := newLab(t)
		j := job("a", "1")
		spoil(&j)
		if m, err := r.Measure(t.Context(), j); err == nil || len(l.engines) > 0 {
			t.Errorf("%s: %+v, %v, %d launches", name, m, err, len(l.engines))
		}
	}
}

// In an open loop the rate is that of the schedule. The test uses real time, since the pacer waits
// on the system's clock.
func TestOpenLoop(t *testing.T) {
	t.Parallel()
	l, r := newLab(t)
	l.service, l.loadTakes = ms, 0
	j := job("a", "1")
	j.Load, j.Window = measure.Load{RequestRate: 400, BatchSize: 1}, 100*ms
	for _, fresh := range []bool{true, false} {
		m, err := r.Measure(t.Context(), j)
		if err != nil || m.Failure != nil || len(m.Windows) != 2 || (m.Times.Launch > 0) != fresh {
			t.Fatalf("%+v, %v", m, err)
		}
		for _, w := range m.Windows {
			if w.Scheduled == 0 || w.Requests == 0 || w.Errors > 0 || w.Server.Requests == 0 {
				t.Errorf("of %d scheduled requests %d were answered, %d failed, the server says %d", w.Scheduled, w.Requests, w.Errors, w.Server.Requests)
			}
		}
	}
	first, err := r.schedule(j)
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.schedule(j)
	if err != nil || first.Next() == second.Next() {
		t.Errorf("two schedules are the same, %v", err)
	}
	j.Load.RequestRate = 1e9
	if _, err := r.Measure(t.Context(), j); err == nil {
		t.Error("a rate that cannot be scheduled is taken for the engine's fault")
	}
}

// Arrivals are new in each load, also after a campaign was resumed.
func TestArrivalsOfAResumedCampaign(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, before := newLab(t)
		_, resumed := newLab(t)
		resumed.count.launches = 1 // as Options.Launches
		seen := map[time.Duration]bool{}
		for _, r := range []*Runner{before, resumed} {
			j := job("a", "1")
			if _, err := r.Measure(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			j.Load = measure.Load{RequestRate: 10, BatchSize: 1}
			for range 2 {
				s, err := r.schedule(j)
				if err != nil {
					t.Fatal(err)
				}
				seen[s.Next()] = true
			}
		}
		if len(seen) != 4 {
			t.Errorf("four loads begin with %d different distances", len(seen))
		}
	})
}

func TestLauncherThatCannotLaunch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		l.startError = os.ErrNotExist
		if _, err := r.Measure(t.Context(), job("a", "1")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("ended with %v, want the campaign's own error", err)
		}
	})
}

// Once the engine has seen the larger batches, the next trials need no ramp.
func TestWarmUpIsShortAfterTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, r := newLab(t)
		j := job("a", "1")
		j.MaxBatch = 4
		first, err := r.Measure(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		second, err := r.Measure(t.Context(), j)
		// The ramp 1, 2, 4 with two requests of 20 ms per request in flight takes 120 ms.
		if err != nil || first.Times.WarmUp-second.Times.WarmUp != 120*ms {
			t.Errorf("warm-ups of %v and %v, %v, want a difference of 120 ms", first.Times.WarmUp, second.Times.WarmUp, err)
		}
	})
}

// A server that makes the sessions again for another configuration needs the ramp again.
func TestRampAfterAReload(t *testing.T) {
	t.Parallel()
	for _, reloads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			_, r := newLab(t)
			r.options.Reloads = reloads
			var warmUps []time.Duration
			for _, config := range []string{"1", "2"} {
				j := job("a", config)
				j.MaxBatch = 4
				m, err := r.Measure(t.Context(), j)
				if err != nil || m.Failure != nil {
					t.Fatalf("%+v, %v", m.Failure, err)
				}
				warmUps = append(warmUps, m.Times.WarmUp)
			}
			want := 120 * ms // time of the ramp, as above
			if reloads {
				want = 0
			}
			if saved := warmUps[0] - warmUps[1]; saved != want {
				t.Errorf("reloads %t: the second warm-up is shorter by %v, want %v", reloads, saved, want)
			}
		})
	}
}

// If a batch takes longer than the requested window, the window lasts two batches. This also holds
// in turns, on a new engine and on one that has served before.
func TestSlowModel(t *testing.T) {
	t.Parallel()
	for _, turn := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, r := newLab(t)
			l.service = 6050 * ms
			j := job("a", "1")
			j.Load.Concurrency, j.Turn = 1, turn
			for _, fresh := range []bool{true, false} {
				j.Fresh = fresh
				m, err := r.Measure(t.Context(), j)
				if err != nil || m.Failure != nil {
					t.Fatalf("turn %t, fresh %t: %+v, %v", turn, fresh, m.Failure, err)
				}
				for _, w := range m.Windows {
					// a histogram's latencies are rounded
					if d := w.Duration - 12100*ms; d < -10*ms || d > 10*ms || w.Requests != 2 {
						t.Errorf("turn %t, fresh %t: %d requests in a window of %v, want 2 in 12.1 s", turn, fresh, w.Requests, w.Duration)
					}
				}
			}
		})
	}
}

// An execution provider may build its kernels in the first inference, which may take as long as
// loading.
func TestSlowFirstInference(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		l.send = func(_ *engine, n int) error {
			if n == 1 {
				time.Sleep(time.Minute)
			}
			return nil
		}
		if m, err := r.Measure(t.Context(), job("a", "1")); err != nil || m.Failure != nil || len(m.Windows) != 2 {
			t.Errorf("%d windows, %+v, %v", len(m.Windows), m.Failure, err)
		}
	})
}

// An engine that has answered gets less time than a new one, however slow its first answer was.
// After that it counts as hung.
func TestHangOfWhatHasAnswered(t *testing.T) {
	t.Parallel()
	for first, want := range map[time.Duration]string{0: "completed no request for 10", time.Minute: "completed no request for 2m0"} {
		synctest.Test(t, func(t *testing.T) {
			l, r := newLab(t)
			l.send = func(_ *engine, n int) error {
				if n == 1 {
					time.Sleep(first)
				}
				return nil
			}
			if m, err := r.Measure(t.Context(), job("a", "1")); err != nil || m.Failure != nil {
				t.Fatal(m.Failure, err)
			}
			l.service = time.Hour
			m, err := r.Measure(t.Context(), job("a", "2"))
			if err != nil || m.Failure == nil || !strings.Contains(m.Failure.Reason, want) {
				t.Errorf("a first answer after %v: %+v, %v", first, m.Failure, err)
			}
		})
	}
}

func TestAnsweredNone(t *testing.T) {
	t.Parallel()
	good, refusing, silent := measure.Window{Requests: 9}, measure.Window{Errors: 3, FirstError: "busy"}, measure.Window{Duration: 2 * time.Second}
	closed, open := measure.Load{Concurrency: 16}, measure.Load{RequestRate: 0.1}
	for name, c := range map[string]struct {
		windows []measure.Window
		load    measure.Load
		want    string // reason; "": no failure
	}{
		"some succeed":                 {[]measure.Window{refusing, good}, closed, ""},
		"all fail":                     {[]measure.Window{silent, refusing, refusing}, open, "all 6 requests failed, the first with: busy"},
		"none ended, as at a low rate": {[]measure.Window{silent, silent}, open, ""},
		"too slow for the windows": {
			[]measure.Window{silent, silent}, closed,
			"no request was answered in 4s with 16 in flight; set a longer search.window, or a lower load",
		},
		"nothing was measured": {nil, closed, ""},
	} {
		reason := ""
		if f := answeredNone(c.windows, c.load); f != nil {
			reason = f.Reason
		}
		if reason != c.want {
			t.Errorf("%s: %q, want %q", name, reason, c.want)
		}
	}
}

// answerInTurn makes engines answer one request after the other, in 10 ms each.
func (l *lab) answerInTurn() {
	l.service = 0
	one := make(chan struct{}, 1)
	l.send = func(*engine, int) error {
		one <- struct{}{}
		time.Sleep(10 * ms)
		<-one
		return nil
	}
}

// The times of a trial are its whole time, with the wait for the answers to requests that are in flight
// at its end: 200 requests, which are answered one after the other, in 10 ms each.
func TestTimesHaveTheWaitForLastAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		l.answerInTurn()
		j := job("a", "1")
		j.Load.Concurrency = 200
		begin := time.Now()
		m, err := r.Measure(t.Context(), j)
		if err != nil || m.Failure != nil {
			t.Fatal(m.Failure, err)
		}
		if took := time.Since(begin); m.Times.Drain < time.Second || m.Times.Total() != took {
			t.Errorf("times %+v of %v", m.Times, took)
		}
	})
}

// Windows that take turns with those of another engine are shorter and begin sooner. The load has
// to settle only on a fresh process.
func TestTurnsAreShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		l.service = 190 * ms // nothing else happens at the instant of an answer
		j := job("a", "1")
		j.Windows, j.Turn, j.Fresh = 1, true, true
		first, err := r.Measure(t.Context(), j)
		if err != nil || first.Failure != nil {
			t.Fatal(first.Failure, err)
		}
		j.Fresh = false
		second, err := r.Measure(t.Context(), j)
		if err != nil || first.Times.WarmUp < 600*ms || second.Times.WarmUp > 250*ms || second.Windows[0].Duration != time.Second {
			t.Errorf("warm-ups of %v and %v, a window of %v: %v; want 3 latencies, one, and 1 s", first.Times.WarmUp, second.Times.WarmUp, second.Windows[0].Duration, err)
		}
		// A load that never settles does not delay a fresh process for long.
		l.send = func(_ *engine, n int) error {
			time.Sleep(time.Duration(n) * ms)
			return nil
		}
		j.Fresh = true
		if restless, err := r.Measure(t.Context(), j); err != nil || restless.Times.WarmUp > 1500*ms {
			t.Errorf("a warm-up of %v for a load that never settles: %v; want about 1 s", restless.Times.WarmUp, err)
		}
		l.send = nil
		j.Turn = false
		if third, err := r.Measure(t.Context(), j); err != nil || third.Times.WarmUp < 600*ms || third.Windows[0].Duration < 1400*ms {
			t.Errorf("not in turn: warm-up of %v, a window of %v: %v; want 3 latencies and 30 batches", third.Times.WarmUp, third.Windows[0].Duration, err)
		}
	})
}

// The pause between turns empties the queue. 64 requests that are answered one after the other, in
// 10 ms each, wait for 640 ms. A window begins once they do.
func TestTurnsBeginWithAFullQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		l.answerInTurn()
		j := job("a", "1")
		j.Load.Concurrency, j.Windows, j.Turn = 64, 1, true
		for _, fresh := range []bool{true, false} {
			j.Fresh = fresh
			m, err := r.Measure(t.Context(), j)
			if err != nil || m.Failure != nil {
				t.Fatal(m.Failure, err)
			}
			if mean, _ := m.Estimate(measure.LatencyAvg); math.Abs(mean.Value/0.640-1) > 0.05 || m.Times.WarmUp > 3*time.Second {
				t.Errorf("fresh: %t: a mean latency of %.0f ms after a warm-up of %v, want 640 ms", fresh, 1e3*mean.Value, m.Times.WarmUp)
			}
		}
	})
}

func TestGoodWindowsHaveNoFlags(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, r := newLab(t)
		j := job("a", "1")
		j.Percentiles = []measure.Metric{measure.LatencyP99}
		m, err := r.Measure(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		// 400 requests are enough for a p99 (368), and the fake engine is steady. Steal and clock
		// depend on the machine.
		flags := slices.DeleteFunc(m.Flags(), func(f measure.Flag) bool { return f == measure.FlagSteal || f == measure.FlagFrequency })
		if len(flags) != 0 {
			t.Errorf("flags %v", flags)
		}
	})
}
