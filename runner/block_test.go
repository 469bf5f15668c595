package runner

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tuner/measure"
)

// blockJobs returns n fresh jobs of different pools.
func blockJobs(n int) []Job {
	var jobs []Job
	for _, pool := range []string{"a", "b", "c", "d"}[:n] {
		j := job(pool, "config of "+pool)
		j.Window, j.Fresh = 500*ms, true
		jobs = append(jobs, j)
	}
	return jobs
}

// awake lists the engines that are up and not paused. up lists those that are up.
func (l *lab) awake() (awake, up []int) {
	for i, e := range l.engines {
		select {
		case <-e.done:
			continue
		default:
		}
		up = append(up, i)
		if !e.paused {
			awake = append(awake, i)
		}
	}
	return awake, up
}

// inLab runs a test with a fake clock.
func inLab(t *testing.T, f func(t *testing.T, l *lab, r *Runner)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		f(t, l, r)
	})
}

func TestBlock(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab, r *Runner) {
		l.send = func(e *engine, _ int) error {
			if awake, _ := l.awake(); len(awake) != 1 || l.engines[awake[0]] != e {
				t.Errorf("engines %v run in the turn of another", awake)
			}
			return nil
		}
		jobs := blockJobs(3)
		for i := range jobs {
			jobs[i].Percentiles = []measure.Metric{measure.LatencyP90}
		}
		measured, err := r.Block(t.Context(), jobs, 4)
		if err != nil {
			t.Fatal(err)
		}
		type turn struct {
			seat int
			at   time.Duration
		}
		var turns []turn
		for i, m := range measured {
			if m.Failure != nil || len(m.Windows) != 4 || m.Launch != i+1 || m.Times.Launch < 400*ms || m.Times.Windows < 2*time.Second || m.Times.WarmUp <= 0 {
				t.Fatalf("seat %d: %+v", i, m)
			}
			for _, w := range m.Windows {
				// 100 requests over all windows are enough for a p90; those of one window are not.
				// The first turn warms up for three latencies, later turns fill the queue.
				if !w.Turn || slices.Contains(w.Flags, measure.FlagFew) || slices.Contains(w.Flags, measure.FlagUnsteady) {
					t.Errorf("seat %d: turn: %t, flags %v", i, w.Turn, w.Flags)
				}
				turns = append(turns, turn{i, w.Start})
			}
			if x, _ := m.Value(measure.Throughput); x < 195 || x > 205 { // 4 clients of 20 ms
				t.Errorf("seat %d: %.1f infer/s", i, x)
			}
		}
		slices.SortFunc(turns, func(a, b turn) int { return int(a.at - b.at) })
		var order []int
		for _, t := range turns {
			order = append(order, t.seat)
		}
		if want := []int{0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0}; !slices.Equal(order, want) {
			t.Errorf("turns in the order %v, want %v", order, want)
		}
		if awake, up := l.awake(); len(awake) != 0 || len(up) != 3 {
			t.Errorf("afterwards engines %v are up, and %v run", up, awake)
		}
	})
}

// After a block, only the engines that the next job needs stay up.
func TestEnginesAfterABlock(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab, r *Runner) {
		check := func(what string, launched int, up ...int) {
			t.Helper()
			if _, now := l.awake(); len(l.engines) != launched || !slices.Equal(now, up) {
				t.Errorf("%s: %d engines were launched, %v are up; want %d and %v", what, len(l.engines), now, launched, up)
			}
		}
		block := func(jobs []Job) []measure.Measurement {
			t.Helper()
			measured, err := r.Block(t.Context(), jobs, 2)
			if err != nil {
				t.Fatal(err)
			}
			return measured
		}
		jobs := blockJobs(3)
		block(jobs)
		check("three jobs", 3, 0, 1, 2)
		block(jobs)
		check("three fresh jobs", 6, 3, 4, 5)
		for i := range jobs {
			jobs[i].Fresh = false
		}
		slices.Reverse(jobs)
		if m := block(jobs); m[0].Launch != 6 || m[2].Launch != 4 {
			t.Errorf("launches %d and %d, want those of before", m[0].Launch, m[2].Launch)
		}
		check("jobs of engines that run", 6, 3, 4, 5)
		block(jobs[:2])
		check("two of them", 6, 4, 5)
		alone, err := r.Measure(t.Context(), jobs[1])
		if err != nil || alone.Launch != 5 {
			t.Errorf("alone: launch %d, %v; want the fifth", alone.Launch, err)
		}
		check("one alone", 6, 4)
		block([]Job{jobs[1], jobs[1]})
		check("one beside its like", 7, 4, 6)
		if failure, err := r.Try(t.Context(), jobs[1]); failure != nil || err != nil || l.engines[4].paused {
			t.Errorf("tried: %v, %v; paused: %t", failure, err, l.engines[4].paused)
		}
		check("a try", 7, 4)
		block(blockJobs(3))
		r.Close(context.Background())
		check("closed", 10)
	})
}

// A refused block leaves no measurement and no engine.
func TestBlocksThatAreRefused(t *testing.T) {
	t.Parallel()
	check := func(name, want string, launched int, jobs []Job, prepare func(*lab, *Runner)) {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab, r *Runner) {
				prepare(l, r)
				_, err := r.Block(t.Context(), jobs, 2)
				var crowded *CrowdedError
				if !errors.As(err, &crowded) || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want that %q", err, want)
				}
				if _, up := l.awake(); len(up) != 0 || len(l.engines) != launched {
					t.Errorf("%d engines were launched, and %v are up; want %d and none", len(l.engines), up, launched)
				}
			})
		})
	}
	known := blockJobs(3)
	for i := range known {
		known[i].Memory = 400e6
	}
	room := func(bytes ...int64) func(*lab, *Runner) {
		return func(_ *lab, r *Runner) {
			r.options.Available = func() int64 {
				left := bytes[0]
				bytes = bytes[1:]
				return left
			}
		}
	}
	// The second engine needs 400 MB. The first one has yet to take its 400 MB.
	check("no room for a second", "needs about 400 MB of memory and those that are up 400 MB more, and 700 MB are left", 1, known, room(700e6))
	check("no room for a third", "those that are up 800 MB more", 2, known, room(800e6, 1199e6))
	check("another machine", "cannot pause a server", 0, known, func(_ *lab, r *Runner) { r.options.Elsewhere = true })
	check("a model that does not load", "load: no such file", 1, known, func(l *lab, _ *Runner) { l.loadError = errors.New("no such file") })
	check("an engine that does not start", "start: no device", 0, known, func(l *lab, _ *Runner) { l.startError = &StartError{"no device"} })
	check("one that is killed for memory", "memory ran out", 3, known, func(l *lab, _ *Runner) {
		l.send = func(e *engine, n int) error {
			if e == l.engines[1] && n > 20 {
				e.die(Exit{Text: "signal: killed", OutOfMemory: true})
			}
			return nil
		}
	})
}

// Memory that the others already hold does not count twice.
func TestRoomForABlock(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab, r *Runner) {
		var left int64
		r.options.Available = func() int64 { return left }
		check := func(what string, first, second, available int64, fits bool) {
			t.Helper()
			jobs := blockJobs(2)
			jobs[0].Memory, jobs[1].Memory, left = first, second, available
			if _, err := r.Block(t.Context(), jobs, 1); errors.As(err, new(*CrowdedError)) == fits {
				t.Errorf("%s: %v", what, err)
			}
		}
		check("both are to grow", 300e6, 400e6, 700e6, true)
		check("nobody tells", 300e6, 400e6, 0, true)
		l.pid = os.Getpid() // of some megabytes
		check("the first holds all that it needs", 1, 400e6, 400e6, true)
		check("the second needs as much as the first, with room", 0, 0, 1e12, true)
		check("the second needs as much as the first, without", 0, 0, 100e3, false)
	})
}

// An engine that fails in its turns, or ends between them, is a result. The others continue.
func TestFailuresInABlock(t *testing.T) {
	t.Parallel()
	check := func(name string, send func(l *lab) func(*engine, int) error) {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab, r *Runner) {
				l.send = send(l)
				measured, err := r.Block(t.Context(), blockJobs(3), 6)
				if err != nil {
					t.Fatal(err)
				}
				for i, m := range measured {
					if failed := m.Failure != nil; failed != (i == 1) || !failed && len(m.Windows) != 6 || m.Launch != i+1 || failed && len(m.Windows) > 0 {
						t.Errorf("seat %d: launch %d, %d windows, %+v", i, m.Launch, len(m.Windows), m.Failure)
					}
				}
				if f := measured[1].Failure; f != nil && f.Stage != measure.StageCrash {
					t.Errorf("%+v, want a crash", f)
				}
				if _, up := l.awake(); !slices.Equal(up, []int{0, 2}) {
					t.Errorf("engines %v are up", up)
				}
			})
		})
	}
	check("in its turn", func(l *lab) func(*engine, int) error {
		return func(e *engine, n int) error {
			if e == l.engines[1] && n > 150 {
				e.die(Exit{Text: "exit status 1"})
			}
			return nil
		}
	})
	check("in another's", func(l *lab) func(*engine, int) error {
		return func(e *engine, n int) error {
			if e == l.engines[2] && n > 150 {
				l.engines[1].die(Exit{Text: "exit status 1"})
			}
			return nil
		}
	})
}

func TestInterruptedBlock(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab, r *Runner) {
		ctx, cancel := context.WithCancel(t.Context())
		l.send = func(e *engine, n int) error {
			if e == l.engines[1] && n > 30 {
				cancel()
			}
			return nil
		}
		_, err := r.Block(ctx, blockJobs(3), 6)
		if _, up := l.awake(); !errors.Is(err, context.Canceled) || len(up) != 0 || len(l.engines) != 3 {
			t.Errorf("%v; %d engines, of which %v are up", err, len(l.engines), up)
		}
	})
}

func TestSenselessBlocks(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab, r *Runner) {
		service := blockJobs(2)
		service[1].ServiceCurve = []Batches{{1, Requests{{}}}}
		idle := blockJobs(2)
		idle[1].Requests = nil
		for name, jobs := range map[string][]Job{"none": nil, "too many": blockJobs(MostSeats + 1), "a service job": service, "no requests": idle} {
			if _, err := r.Block(t.Context(), jobs, 2); err == nil || errors.As(err, new(*CrowdedError)) || len(l.engines) > 0 {
				t.Errorf("%s: %v, %d engines", name, err, len(l.engines))
			}
		}
	})
}

// Engines that take turns are on the GPUs together. An H100 showed 20.2 GB in the turns of two
// engines, of which the larger took 9.3 GB alone. The other figures are those of the turn.
func TestGPUMemoryInABlock(t *testing.T) {
	t.Parallel()
	windows := []measure.Window{{GPUs: []measure.GPUWindow{{UUID: "GPU-1", Utilization: 0.9, Power: 300, MemoryUsed: 20_166 << 20, MemoryTotal: 81_559 << 20}}}, {}}
	forgetGPUMemory(windows)
	if g := windows[0].GPUs[0]; g.MemoryUsed != 0 || g.MemoryTotal != 81_559<<20 || g.Utilization != 0.9 || g.Power != 300 {
		t.Errorf("%+v", g)
	}
	if e, ok := (measure.Measurement{Windows: windows}).Estimate(measure.GPUMemory); ok {
		t.Errorf("the memory is known: %+v", e)
	}
}
