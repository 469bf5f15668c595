package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tuner/measure"
	"tuner/measure/arrivals"
)

// noted is a fake server that notes when it answered.
type noted struct {
	*server
	mu      sync.Mutex
	answers []time.Duration // since the server's epoch
}

// notedConn notes the answers of a connection.
type notedConn struct {
	Conn
	s *noted
}

func (s *noted) dial(ctx context.Context, number int) (Conn, error) {
	c, err := s.server.dial(ctx, number)
	return notedConn{c, s}, err
}

func (c notedConn) Receive() (slot int, final, null bool, err error) {
	slot, final, null, err = c.Conn.Receive()
	if err == nil {
		c.s.mu.Lock()
		c.s.answers = append(c.s.answers, time.Since(c.s.epoch))
		c.s.mu.Unlock()
	}
	return slot, final, null, err
}

// within counts the answers from an instant to another.
func (s *noted) within(from, to time.Duration) int {
	n := 0
	for _, at := range s.answers {
		if from <= at && at < to {
			n++
		}
	}
	return n
}

// randomPart returns the load on a server of some service time: a closed loop, or an open one with
// one of the kinds of arrivals.
func randomPart(t *testing.T, random *rand.Rand, s *noted, name string) Part {
	t.Helper()
	// no request of a window ends at the instant of an edge
	service := time.Duration(1+random.IntN(150))*ms + time.Duration(1+random.IntN(999))*time.Microsecond + 1
	s.service = func(time.Duration) time.Duration { return service }
	p := Part{Model: name, Dial: s.dial, Patience: 10 * time.Second, WarmUp: time.Duration(random.IntN(4)) * time.Second}
	rate := 1 + 80*random.Float64()
	var pattern arrivals.Pattern // Poisson
	switch random.IntN(5) {
	case 0:
		p.Load.Concurrency = 1 + random.IntN(6)
		p.Ramp = []int{1, p.Load.Concurrency}[:random.IntN(3)]
		p.Unsettled = random.IntN(2) == 0
		return p
	case 1:
		pattern.Kind = arrivals.ConstantKind
	case 2:
		pattern.Kind, pattern.CV = arrivals.GammaKind, 2
	case 3:
		pattern.Kind = arrivals.CurveKind
		pattern.Curve = []arrivals.Point{{Factor: 1}, {At: time.Second, Factor: 3}, {At: 2 * time.Second, Factor: 1}}
	}
	schedule, err := pattern.Schedule(rate, random.Uint64())
	if err != nil {
		t.Fatal(err)
	}
	p.Load.RequestRate, p.Arrivals, p.Period = rate, schedule, pattern.Period(rate)
	if random.IntN(3) == 0 {
		p.WarmUpRequests = 1 + random.IntN(40)
	}
	return p
}

// All parts have windows with the same edges, without gaps. A window has exactly the requests that
// its own server answered between its edges, so each is counted in one window of its model.
func TestTogetherEdgesAreEqual(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 7))
				var parts []Part
				servers := make([]*noted, 1+random.IntN(4))
				records := make([]int, len(servers))
				for i := range servers {
					servers[i] = &noted{server: constant(0)}
					p := randomPart(t, random, servers[i], fmt.Sprint("model", i))
					p.Sink = func(Record) { records[i]++ }
					parts = append(parts, p)
				}
				want := 1 + random.IntN(4)
				windows := Windows{
					Length: func([]time.Duration) time.Duration { return time.Duration(200+random.IntN(1000)) * ms },
					More:   func(windows [][]measure.Window) bool { return len(windows[0]) < want },
					Edge:   func(context.Context, int) error { return nil },
				}
				if random.IntN(3) == 0 {
					windows.Requests = 1 + random.IntN(30)
				}
				results, err := together(t.Context(), parts, windows, newSleeper)
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range results {
					if len(r.Windows) != want || r.WarmUp != r.Windows[0].Start {
						t.Fatalf("part %d: %d windows, the first at %v after a warm-up of %v", i, len(r.Windows), r.Windows[0].Start, r.WarmUp)
					}
					total := 0
					for k, w := range r.Windows {
						first := results[0].Windows[k]
						if w.Start != first.Start || w.Duration != first.Duration {
							t.Errorf("window %d of part %d is [%v, +%v], of part 0 [%v, +%v]", k, i, w.Start, w.Duration, first.Start, first.Duration)
						}
						if k > 0 && w.Start != r.Windows[k-1].Start+r.Windows[k-1].Duration {
							t.Errorf("window %d of part %d does not begin where the one before ends", k, i)
						}
						from := w.Start
						if k == 0 { // the answer that ended a ramp or a counted warm-up may be the beginning
							from++
						}
						if n := servers[i].within(from, w.Start+w.Duration); n != w.Requests {
							t.Errorf("window %d of part %d has %d requests, its server answered %d", k, i, w.Requests, n)
						}
						if w.Requests < windows.Requests {
							t.Errorf("window %d of part %d has %d requests, want at least %d", k, i, w.Requests, windows.Requests)
						}
						total += w.Requests
					}
					if records[i] != total {
						t.Errorf("part %d: %d records of %d requests", i, records[i], total)
					}
					if servers[i].inFlight.Load() != 0 {
						t.Errorf("part %d: %d requests left in flight", i, servers[i].inFlight.Load())
					}
				}
			})
		})
	}
}

// pair returns two parts with a request in flight each, for two windows of 1 s.
func pair(a, b *server) ([]Part, Windows) {
	first, second := at(a, 1), at(b, 1)
	first.Model, second.Model = "encoder", "ranker"
	return []Part{first.Part, second.Part}, first.Windows
}

// The windows wait until all loads are steady. A load that was steady before keeps running. Also the
// timed warm-ups begin together, after the longest ramp.
func TestTogetherAwaitsTheSlowest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// No edge coincides with the end of a request.
		slow, fast := constant(1510*ms), constant(11*ms)
		parts, windows := pair(slow, fast)
		parts[0].Ramp = []int{1}
		edges := 0
		windows.Edge = func(context.Context, int) error {
			edges++
			if slow.inFlight.Load() != 1 || fast.inFlight.Load() != 1 {
				t.Errorf("edge %d: %d and %d requests in flight, want 1 each", edges, slow.inFlight.Load(), fast.inFlight.Load())
			}
			return nil
		}
		var p99 []time.Duration
		windows.Length = func(seen []time.Duration) time.Duration {
			p99 = seen
			return 4 * time.Second
		}
		results, err := together(t.Context(), parts, windows, newSleeper)
		if err != nil {
			t.Fatal(err)
		}
		if len(p99) != 2 || p99[0] < 1490*ms || p99[0] > 1530*ms || p99[1] < 10*ms || p99[1] > 12*ms {
			t.Errorf("p99 %v, want 1510 ms and 11 ms", p99)
		}
		// The ramp sends two requests, until 3.02 s. The load is warm after 5 s.
		if w := results[0].WarmUp; w < 7500*ms || w > 8200*ms {
			t.Errorf("warm-up of %v, want about 8 s", w)
		}
		// In 8 s there are 5 or 6 answers of 1.51 s. The fast part has 727.
		for i, most := range []int{6, 728} {
			n := 0
			for _, w := range results[i].Windows {
				n += w.Requests
			}
			if n > most || n < most-2 {
				t.Errorf("part %d: %d requests, want about %d", i, n, most)
			}
		}
		// the fast load has run from 3.02 s on
		if sent := fast.sent.Load(); sent < 12000/11 {
			t.Errorf("the fast server got %d requests", sent)
		}
	})
}

// A load that fails ends them all. The error names its model. The windows before are those of all.
func TestTogetherFails(t *testing.T) {
	t.Parallel()
	refused := errors.New("queue full")
	for name, c := range map[string]struct {
		spoil   func(s *server)
		want    any
		text    string
		most    time.Duration // until the end
		windows int
	}{
		// Hung since 3 s: the latest answer came before, and patience lasts 10 s.
		"hangs": {func(s *server) {
			s.service = func(at time.Duration) time.Duration {
				if at > 3*time.Second {
					return -1
				}
				return 20 * ms
			}
		}, new(*HungError), `model "ranker": the server completed no request for 10`, 13200 * ms, 12},
		"crashes": {func(s *server) {
			s.down = make(chan struct{})
			time.AfterFunc(3*time.Second, func() { close(s.down) })
		}, new(*LostError), `model "ranker": the server closed all connections`, 4200 * ms, 3},
		"refuses": {func(s *server) { s.refuse = func(int64) error { return refused } },
			new(*RefusedError), `model "ranker": all `, 1300 * ms, 0},
		"is not there": {func(s *server) {
			s.down = make(chan struct{})
			close(s.down)
		}, new(*PartError), `model "ranker": cannot open connection 1`, 400 * ms, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				good, bad := constant(20*ms), constant(20*ms)
				c.spoil(bad)
				parts, windows := pair(good, bad)
				parts[0].Ramp = []int{1, 1, 1}
				windows.More = func([][]measure.Window) bool { return true }
				begin := time.Now()
				results, err := together(t.Context(), parts, windows, newSleeper)
				var part *PartError
				if !errors.As(err, c.want) || !errors.As(err, &part) || part.Model != "ranker" || !strings.HasPrefix(err.Error(), c.text) {
					t.Errorf("ended with %v", err)
				}
				if took := time.Since(begin); took > c.most {
					t.Errorf("ended after %v, want at most %v", took, c.most)
				}
				if len(results) != 2 || len(results[0].Windows) != len(results[1].Windows) || len(results[0].Windows) > c.windows {
					t.Errorf("%d and %d windows, want the same number, at most %d", len(results[0].Windows), len(results[1].Windows), c.windows)
				}
				if good.inFlight.Load() != 0 || bad.inFlight.Load() != 0 {
					t.Errorf("%d and %d requests left in flight", good.inFlight.Load(), bad.inFlight.Load())
				}
			})
		})
	}
}

// The ramp of one part does not go on after another has failed.
func TestTogetherFailsInTheRamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow, bad := constant(5*time.Second), constant(20*ms)
		bad.refuse = func(int64) error { return errors.New("no such model") }
		parts, windows := pair(slow, bad)
		parts[0].Ramp, parts[1].Ramp = []int{1, 1, 1, 1}, []int{1}
		begin := time.Now()
		_, err := together(t.Context(), parts, windows, newSleeper)
		if !strings.HasPrefix(fmt.Sprint(err), `model "ranker": all 2 requests`) || time.Since(begin) > 300*ms || slow.sent.Load() != 1 {
			t.Errorf("ended after %v with %v; the other part sent %d requests", time.Since(begin), err, slow.sent.Load())
		}
	})
}

// The end of the context and the error of an edge are no errors of a part.
func TestTogetherEndsFromOutside(t *testing.T) {
	t.Parallel()
	stop := errors.New("stopped")
	for name, end := range map[string]func(w *Windows, cancel context.CancelCauseFunc){
		"edge":   func(w *Windows, _ context.CancelCauseFunc) { w.Edge = func(context.Context, int) error { return stop } },
		"cancel": func(_ *Windows, cancel context.CancelCauseFunc) { time.AfterFunc(1700*ms, func() { cancel(stop) }) },
		"cancelled in the ramp": func(_ *Windows, cancel context.CancelCauseFunc) {
			time.AfterFunc(10*ms, func() { cancel(stop) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				a, b := constant(20*ms), constant(30*ms)
				parts, windows := pair(a, b)
				parts[0].Ramp = []int{1}
				end(&windows, cancel)
				results, err := together(ctx, parts, windows, newSleeper)
				if !errors.Is(err, stop) || errors.As(err, new(*PartError)) || len(results) != 2 {
					t.Errorf("ended with %v", err)
				}
				if a.inFlight.Load() != 0 || b.inFlight.Load() != 0 {
					t.Errorf("%d and %d requests left in flight", a.inFlight.Load(), b.inFlight.Load())
				}
			})
		})
	}
}

// Enough sees the first share of the windows of all parts, and ends them all.
func TestTogetherIsCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parts, windows := pair(constant(20*ms), constant(50*ms))
		windows.Enough = func(soFar []measure.Window) bool {
			// 50 requests/s and 20 in 0.4 s.
			if len(soFar) != 2 || soFar[0].Requests < 19 || soFar[0].Requests > 21 || soFar[1].Requests < 7 || soFar[1].Requests > 9 || soFar[0].Duration != soFar[1].Duration {
				t.Errorf("asked about %v", soFar)
			}
			return true
		}
		results, err := together(t.Context(), parts, windows, newSleeper)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if !r.Cut || len(r.Windows) != 1 || r.Windows[0].Duration != 400*ms {
				t.Errorf("%d windows, cut: %t", len(r.Windows), r.Cut)
			}
		}
	})
}

// Joined windows have the same edges too.
func TestTogetherIsJoined(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parts, windows := pair(constant(20*ms), constant(50*ms))
		joined := 0
		windows.MostWindows, windows.Joined = 4, func() { joined++ }
		windows.More = func(all [][]measure.Window) bool {
			last := all[1][len(all[1])-1]
			return len(all[0]) == len(all[1]) && last.Start+last.Duration < 20*time.Second
		}
		results, err := together(t.Context(), parts, windows, newSleeper)
		if err != nil || joined < 3 {
			t.Fatalf("joined %d times: %v", joined, err)
		}
		edges := func(r Result) (list []time.Duration) {
			for _, w := range r.Windows {
				list = append(list, w.Start, w.Start+w.Duration)
			}
			return list
		}
		if a, b := edges(results[0]), edges(results[1]); !slices.Equal(a, b) {
			t.Errorf("edges %v and %v", a, b)
		}
	})
}

func TestTogetherChecksItsParts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(parts []Part, w *Windows) []Part
		want   string
	}{
		"none":       {func([]Part, *Windows) []Part { return nil }, "no parts"},
		"same model": {func(p []Part, _ *Windows) []Part { p[1].Model = "encoder"; return p }, `both are of model "encoder"`},
		"no load":    {func(p []Part, _ *Windows) []Part { p[1].Load.Concurrency = 0; return p }, `model "ranker": cannot make a closed loop of concurrency 0`},
		"total":      {func(p []Part, w *Windows) []Part { w.Total = 7; return p }, "exactly 7 requests to each of 2 models"},
		"odd":        {func(p []Part, w *Windows) []Part { w.MostWindows = 3; return p }, "must be even"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts, windows := pair(constant(ms), constant(ms))
			parts = c.change(parts, &windows)
			results, err := Together(t.Context(), parts, windows)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(results) != len(parts) {
				t.Errorf("%d results, %v; want %q", len(results), err, c.want)
			}
		})
	}
}
