package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tuner/measure"
	"tuner/measure/arrivals"
)

const ms = time.Millisecond

// server is a fake server. Each request takes the service time of its instant, whatever else is in
// flight.
type server struct {
	epoch   time.Time
	service func(at time.Duration) time.Duration // negative: it never answers
	refuse  func(n int64) error                  // error for the n-th request, from 1; nil: none
	// when closed, all connections break and new ones are refused; nil: never
	down chan struct{}

	sent, inFlight, closed atomic.Int64
	givenUp                atomic.Int64    // requests that were interrupted
	peaks                  [3]atomic.Int64 // requests that began with 1, 2, 3 or more in flight
}

// constant returns a server with a fixed service time.
func constant(d time.Duration) *server {
	return &server{epoch: time.Now(), service: func(time.Duration) time.Duration { return d }}
}

func (s *server) dial(context.Context, int) (Conn, error) {
	if s.isDown() {
		return nil, errors.New("connection refused")
	}
	return &connection{s: s, interrupted: make(chan struct{})}, nil
}

func (s *server) isDown() bool {
	select {
	case <-s.down:
		return true
	default:
		return false
	}
}

// connection is a connection to a fake server. A request begins when it is sent, and is answered in
// Receive.
type connection struct {
	s           *server
	refused     error
	due         time.Time // instant of the answer; zero: never
	once        sync.Once
	interrupted chan struct{}
}

func (c *connection) Slots() int { return 1 }

func (c *connection) Send(int, int) {
	n := c.s.sent.Add(1)
	c.s.peaks[min(c.s.inFlight.Add(1), 3)-1].Add(1)
	c.refused, c.due = nil, time.Time{}
	if c.s.refuse != nil {
		c.refused = c.s.refuse(n)
	}
	if d := c.s.service(time.Since(c.s.epoch)); d >= 0 {
		c.due = time.Now().Add(d)
	}
}

func (c *connection) Receive() (slot int, final, null bool, err error) {
	defer c.s.inFlight.Add(-1)
	if c.refused != nil {
		return 0, true, false, c.refused
	}
	var answer <-chan time.Time
	if !c.due.IsZero() {
		answer = time.After(time.Until(c.due))
	}
	select {
	case <-c.interrupted:
		c.s.givenUp.Add(1)
		return 0, false, false, errInterrupted
	case <-c.s.down:
		return 0, false, false, errors.New("connection reset")
	case <-answer:
		return 0, true, false, nil
	}
}

var errInterrupted = errors.New("interrupted")

func (c *connection) Broken() bool {
	select {
	case <-c.interrupted:
		return true
	default:
		return c.s.isDown()
	}
}

func (c *connection) Interrupt() { c.once.Do(func() { close(c.interrupted) }) }

func (c *connection) Close() error {
	c.s.closed.Add(1)
	return nil
}

// at returns options for two windows of 1 s at a concurrency.
func at(s *server, concurrency int) Options {
	part := Part{
		Load:     measure.Load{Concurrency: concurrency, BatchSize: 1},
		Dial:     s.dial,
		WarmUp:   5 * time.Second,
		Patience: 10 * time.Second,
	}
	return Options{part, Windows{
		More:   func(windows [][]measure.Window) bool { return len(windows[0]) < 2 },
		Length: func([]time.Duration) time.Duration { return time.Second },
		Edge:   func(context.Context, int) error { return nil },
	}}
}

func TestWindowsHoldWhatCompletedInThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(20 * ms)
		o := at(s, 4)
		o.Load.BatchSize = 8
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Windows) != 2 || r.WarmUp < shortestWarmUp || r.WarmUp > 400*ms {
			t.Fatalf("%d windows after a warm-up of %v, want 2 after 0.2 to 0.4 s", len(r.Windows), r.WarmUp)
		}
		if r.Windows[1].Start != r.Windows[0].Start+r.Windows[0].Duration {
			t.Error("the windows do not adjoin")
		}
		for _, w := range r.Windows {
			// 4 clients × 50 requests/s in 1 s, ± one round at the edges; 20 in each tenth.
			if w.Duration != time.Second || w.Requests < 196 || w.Requests > 204 || w.Inferences != 8*w.Requests || len(w.Sub) != 10 {
				t.Errorf("%d requests, %d inferences in %v, %d parts", w.Requests, w.Inferences, w.Duration, len(w.Sub))
			}
			if p50 := w.Sub[3].Latency.Quantile(0.5); p50 < 19900*time.Microsecond || p50 > 20100*time.Microsecond || w.Sub[3].Requests != 20 {
				t.Errorf("%d requests of %v in a tenth, want 20 of 20 ms", w.Sub[3].Requests, p50)
			}
			if len(w.Flags) != 0 || w.Errors != 0 || w.FirstError != "" {
				t.Errorf("a good window has flags %v, %d errors %q", w.Flags, w.Errors, w.FirstError)
			}
		}
		if s.closed.Load() != 4 {
			t.Errorf("%d of 4 connections were closed", s.closed.Load())
		}
	})
}

// If Enough returns true, the window ends at its look and is the last. Otherwise it lasts its full
// length.
func TestWindowsAreCutWhereTheyShowEnough(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ enough, windows int }{{1, 1}, {2, 2}, {3, 2}} {
		synctest.Test(t, func(t *testing.T) {
			var edges []int
			looks, o := 0, at(constant(20*ms), 4)
			o.Load.BatchSize = 8
			o.Edge = func(_ context.Context, edge int) error { edges = append(edges, edge); return nil }
			o.Enough = func(parts []measure.Window) bool {
				soFar := parts[0]
				// 4 clients × 50 requests/s in 0.4 s.
				if soFar.Duration != 400*ms || soFar.Requests < 76 || soFar.Requests > 84 || soFar.Inferences != 8*soFar.Requests || len(soFar.Sub) < 4 || len(soFar.Sub) > 5 {
					t.Errorf("asked after %v and %d requests in %d parts", soFar.Duration, soFar.Requests, len(soFar.Sub))
				}
				looks++
				return looks == c.enough
			}
			r, err := Run(t.Context(), o)
			if err != nil || len(r.Windows) != c.windows || looks != c.windows || r.Cut != (c.enough <= c.windows) {
				t.Fatalf("%v: %d windows, %d looks, cut: %t", err, len(r.Windows), looks, r.Cut)
			}
			want := time.Second
			if r.Cut {
				want = 400 * ms
			}
			for i, w := range r.Windows {
				checkParts(t, w)
				if i < len(r.Windows)-1 && w.Duration != time.Second || i == len(r.Windows)-1 && w.Duration != want {
					t.Errorf("window %d lasts %v", i, w.Duration)
				}
			}
			if len(edges) != c.windows+1 {
				t.Errorf("edges %v", edges)
			}
		})
	}
}

func TestTheCallerIsAskedAtTheEdges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// no edge coincides with the end of a request, when nothing is in flight for a moment
		s := constant(53 * ms)
		o := at(s, 2)
		var edges []int
		o.Edge = func(_ context.Context, edge int) error {
			if s.inFlight.Load() != 2 {
				t.Errorf("%d requests in flight at edge %d, want 2", s.inFlight.Load(), edge)
			}
			edges = append(edges, edge)
			return nil
		}
		o.Length = func(p99 []time.Duration) time.Duration {
			if p99[0] < 52950*time.Microsecond || p99[0] > 53050*time.Microsecond || len(edges) != 1 {
				t.Errorf("asked for a length for p99 %v after %d edges, want 53 ms after 1", p99, len(edges))
			}
			return 3 * time.Second
		}
		r, err := Run(t.Context(), o)
		if err != nil || !slices.Equal(edges, []int{0, 1, 2}) || r.Windows[1].Duration != 3*time.Second {
			t.Errorf("edges %v, windows of %v, %v", edges, r.Windows[1].Duration, err)
		}
		wrong := errors.New("no statistics")
		o.Edge = func(context.Context, int) error { return wrong }
		if _, err := Run(t.Context(), o); !errors.Is(err, wrong) {
			t.Errorf("an edge's error ends the run with %v", err)
		}
	})
}

func TestRampSendsTwiceAtEachConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(10 * ms)
		o := at(s, 3)
		o.Ramp = []int{1, 2}
		stop := errors.New("enough")
		o.Edge = func(context.Context, int) error { return stop }
		if _, err := Run(t.Context(), o); !errors.Is(err, stop) {
			t.Fatal(err)
		}
		// One client sends 2 requests alone. Then two clients send 4 requests, 2 of which begin
		// alone or second. Then 3 clients continue.
		if alone := s.peaks[0].Load(); alone < 3 {
			t.Errorf("%d requests began alone, want the 2 of the first step and some of the second", alone)
		}
		if pairs := s.peaks[1].Load(); pairs < 2 {
			t.Errorf("%d requests began second, want those of the second step", pairs)
		}
	})
}

func TestRefusalsAreCountedAndDoNotSpin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(20 * ms)
		s.refuse = func(n int64) error {
			if n%3 == 0 {
				return fmt.Errorf("queue full at request %d", n)
			}
			return nil
		}
		r, err := Run(t.Context(), at(s, 2))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range r.Windows {
			// Two of three requests take 20 ms. The third is refused at once and costs 1 ms. A
			// cycle of 3 takes 41 ms per client, so 2 × 1000/41 ≈ 49 refusals/s.
			if w.Errors < 44 || w.Errors > 54 || w.FirstError == "" || !slices.Contains(w.Flags, measure.FlagErrors) {
				t.Errorf("%d errors, first %q, flags %v, want about 49", w.Errors, w.FirstError, w.Flags)
			}
		}
	})
}

func TestServerThatRefusesEverything(t *testing.T) {
	t.Parallel()
	for name, ramp := range map[string][]int{"with a ramp": {1, 2}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := constant(time.Second)
				s.refuse = func(int64) error { return errors.New("model is not ready") }
				o := at(s, 2)
				o.Ramp = ramp
				_, err := Run(t.Context(), o)
				var refused *RefusedError
				if !errors.As(err, &refused) || refused.First != "model is not ready" || refused.Requests == 0 {
					t.Errorf("ended with %v", err)
				}
				// Pauses double up to 100 ms: at most 2 × (8 + 10) requests in about 1 s.
				if s.sent.Load() > 2*(8+10) {
					t.Errorf("%d requests were sent to a server that refuses all", s.sent.Load())
				}
			})
		})
	}
}

func TestHungServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		service func(time.Duration) time.Duration
		first   time.Duration // patience until the first answer
		want    time.Duration // time from the last answer until the hang is noticed
	}{
		"from the beginning":        {func(time.Duration) time.Duration { return -1 }, 0, 10 * time.Second},
		"before the first answer":   {func(time.Duration) time.Duration { return -1 }, time.Minute, time.Minute},
		"no patience for the first": {func(time.Duration) time.Duration { return -1 }, time.Second, 10 * time.Second},
		"in a window": {func(at time.Duration) time.Duration {
			if at > time.Second {
				return -1
			}
			return 20 * ms
		}, time.Minute, 10 * time.Second},
		"a slow one gets 20 latencies": {func(at time.Duration) time.Duration {
			if at > 2500*ms {
				return -1
			}
			return time.Second
		}, 0, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := constant(0)
				s.service = c.service
				o := at(s, 2)
				o.First = c.first
				_, err := Run(t.Context(), o)
				var hung *HungError
				if !errors.As(err, &hung) || hung.Waited < c.want || hung.Waited > c.want+200*ms {
					t.Errorf("ended with %v, want a hang noticed after %v", err, c.want)
				}
				if s.inFlight.Load() != 0 {
					t.Errorf("%d requests were left in flight", s.inFlight.Load())
				}
			})
		})
	}
}

// The first answer may take long, since the server builds its kernels for it. Later answers get no
// such patience.
func TestSlowFirstAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(0)
		s.service = func(at time.Duration) time.Duration {
			switch {
			case at == 0:
				return 30 * time.Second
			case at > 40*time.Second:
				return -1
			}
			return 20 * ms
		}
		o := at(s, 2)
		o.Ramp, o.First = []int{1}, time.Minute
		o.More = func([][]measure.Window) bool { return true }
		r, err := Run(t.Context(), o)
		var hung *HungError
		if !errors.As(err, &hung) || hung.Waited < 10*time.Second || hung.Waited > 10200*ms || len(r.Windows) == 0 {
			t.Errorf("%d windows, then %v; want a hang noticed 10 s after 40 s", len(r.Windows), err)
		}
	})
}

// Answers to the ramp are not answers to the load. The warm-up waits for one, and the windows are
// as long as it took.
func TestWarmUpAwaitsAnAnswerOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := at(constant(6050*ms), 1)
		o.Ramp = []int{1}
		o.Length = func(p99 []time.Duration) time.Duration { return 2 * p99[0] }
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		// The ramp's two requests take 12.1 s. The tick after the load's first answer is at 18.2 s.
		if r.WarmUp != 18200*ms {
			t.Errorf("the first window begins at %v, want 18.2 s", r.WarmUp)
		}
		for _, w := range r.Windows {
			// latencies of a histogram are rounded
			if d := w.Duration - 12100*ms; d < -10*ms || d > 10*ms || w.Requests != 2 {
				t.Errorf("%d requests in a window of %v, want 2 in 12.1 s", w.Requests, w.Duration)
			}
		}
	})
}

// A server that refuses every request after the ramp is not measured. Refusals before that do not
// count.
func TestServerThatRefusesAfterTheRamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(20 * ms)
		s.refuse = func(n int64) error {
			if n > 1 {
				return errors.New("out of memory")
			}
			return nil
		}
		o := at(s, 1)
		o.Ramp = []int{1} // two requests
		_, err := Run(t.Context(), o)
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Requests == 0 || refused.Requests > int(s.sent.Load())-2 {
			t.Errorf("of %d requests: %v", s.sent.Load(), err)
		}
	})
}

func TestCancelledRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(20 * ms)
		crashed := errors.New("engine exited")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(crashed) })
		begin := time.Now()
		if _, err := Run(ctx, at(s, 3)); !errors.Is(err, crashed) || time.Since(begin) > time.Second+tick {
			t.Errorf("ended after %v with %v, want the cause", time.Since(begin), err)
		}
		if s.inFlight.Load() != 0 || s.closed.Load() != 3 {
			t.Errorf("%d requests left in flight, %d of 3 connections closed", s.inFlight.Load(), s.closed.Load())
		}
	})
}

func TestDriftingLoadIsUnsteady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(0)
		// 20 ms slower every second
		s.service = func(at time.Duration) time.Duration { return 10*ms + at/50 }
		r, err := Run(t.Context(), at(s, 2))
		if err != nil {
			t.Fatal(err)
		}
		if r.WarmUp < 5*time.Second || !slices.Contains(r.Windows[0].Flags, measure.FlagUnsteady) {
			t.Errorf("warm-up of %v, flags %v, want the cap of 5 s and unsteady", r.WarmUp, r.Windows[0].Flags)
		}
	})
}

// A client that is slow to send has fewer requests in flight than wanted.
func TestIdleClientsBreakLittlesLaw(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(20 * ms)
		s.refuse = func(n int64) error {
			if n > 100 && n%2 == 0 {
				return errors.New("busy") // after this the client pauses for 1 ms or more
			}
			return nil
		}
		r, err := Run(t.Context(), at(s, 2))
		if err != nil || !slices.Contains(r.Windows[1].Flags, measure.FlagLittle) {
			t.Errorf("flags %v, %v, want little", r.Windows[1].Flags, err)
		}
	})
}

func TestConnectionThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(0)
		o := at(s, 3)
		var attempts atomic.Int64
		o.Dial = func(ctx context.Context, connection int) (Conn, error) {
			if connection == 2 {
				attempts.Add(1)
				return nil, errors.New("connection refused")
			}
			return s.dial(ctx, connection)
		}
		_, err := Run(t.Context(), o)
		if err == nil || err.Error() != "cannot open connection 3: connection refused (2 of 3 were opened)" {
			t.Errorf("ended with %v", err)
		}
		if s.closed.Load() != 2 || attempts.Load() != 4 {
			t.Errorf("%d of 2 connections closed, %d attempts", s.closed.Load(), attempts.Load())
		}
	})
}

func TestSenselessLoadsAreRefused(t *testing.T) {
	t.Parallel()
	arrivals, _ := arrivals.Constant(1)
	for name, spoil := range map[string]func(*Options){
		"no concurrency": func(o *Options) { o.Load.Concurrency = 0 },
		"two loads":      func(o *Options) { o.Arrivals = arrivals },
		"negative bound": func(o *Options) { o.MaxInFlight = -1 },
		"ramp of a rate": func(o *Options) { o.Load, o.Arrivals, o.Ramp = measure.Load{RequestRate: 1}, arrivals, []int{1} },
	} {
		o := at(constant(0), 1)
		spoil(&o)
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%s: a load that makes no sense was made", name)
		}
	}
}

// stale is a connection that the server closes before a request.
type stale struct {
	Conn
	request int  // the request that finds it closed
	never   bool // every request does
	gone    bool
}

// unanswered is the error of a request that may be sent once more.
type unanswered struct{ error }

func (unanswered) Unanswered() bool { return true }

func (c *stale) Send(slot, request int) {
	if c.gone = request == c.request || c.never; !c.gone {
		c.Conn.Send(slot, request)
	}
}

func (c *stale) Receive() (slot int, final, null bool, err error) {
	if c.gone {
		return 0, true, false, unanswered{errInterrupted}
	}
	return c.Conn.Receive()
}

func (c *stale) Broken() bool { return c.gone || c.Conn.Broken() }

// A request on a connection that the server had closed is sent once more, but not twice. Its
// latency counts from the first sending.
func TestConnectionsThatTheServerHadClosed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open   bool
		never  bool // no connection takes request 7
		errors int
	}{
		"closed loop": {}, "open loop": {open: true}, "twice": {never: true, errors: 50}, "twice in an open loop": {open: true, never: true, errors: 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := constant(20 * ms)
				o := at(s, 2)
				if c.open {
					o = every(t, s, 10*ms)
				}
				var dials atomic.Int64
				o.Dial = func(ctx context.Context, connection int) (Conn, error) {
					inner, err := s.dial(ctx, connection)
					wrapped := &stale{Conn: inner, request: -1, never: c.never}
					if time.Since(s.epoch) > 0 { // a connection that replaces another
						time.Sleep(30 * ms)
					} else {
						wrapped.request = 7
					}
					dials.Add(1)
					return wrapped, err
				}
				o.Total, o.WarmUp = 50, 0
				slowest := time.Duration(0)
				o.Sink = func(r Record) {
					if r.Request == 7 && !c.never {
						slowest = r.Responses[0] - r.Scheduled
					}
				}
				r, err := run(t.Context(), o, newSleeper)
				w := r.Windows[0]
				if err != nil || w.Errors != c.errors || w.Requests != 50-c.errors {
					t.Fatalf("%d requests, %d errors, %v", w.Requests, w.Errors, err)
				}
				if want := max(1, c.errors); r.Resent != want {
					t.Errorf("%d requests were sent once more, want %d", r.Resent, want)
				}
				if !c.never && slowest != 50*ms { // 30 ms for the connection, 20 ms for the answer
					t.Errorf("request 7 took %v, want 50 ms", slowest)
				}
				if s.closed.Load() != dials.Load() || s.inFlight.Load() != 0 {
					t.Errorf("%d of %d connections closed, %d requests left in flight", s.closed.Load(), dials.Load(), s.inFlight.Load())
				}
			})
		})
	}
}
