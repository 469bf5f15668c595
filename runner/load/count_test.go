package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tuner/measure"
)

// checkParts checks that the slices of a window add up to it.
func checkParts(t *testing.T, w measure.Window) {
	t.Helper()
	var requests int
	var duration time.Duration
	for _, sub := range w.Sub {
		requests, duration = requests+sub.Requests, duration+sub.Duration
		if sub.Latency.Count() != sub.Requests {
			t.Errorf("%d latencies of %d requests", sub.Latency.Count(), sub.Requests)
		}
	}
	if requests != w.Requests || duration != w.Duration {
		t.Errorf("slices of %d requests and %v in a window of %d and %v", requests, duration, w.Requests, w.Duration)
	}
}

func TestExactlySoManyRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(20 * ms)
		o := at(s, 4)
		o.Total, o.WarmUpRequests = 98, 7
		var edges []int64
		o.Edge = func(context.Context, int) error {
			edges = append(edges, s.sent.Load())
			return nil
		}
		numbers := map[int]int{}
		o.Sink = func(r Record) { numbers[r.Request]++ }
		o.Length, o.More = nil, nil // Length and More are not called
		r, err := Run(t.Context(), o)
		if err != nil || len(r.Windows) != 1 {
			t.Fatalf("%d windows, %v", len(r.Windows), err)
		}
		w := r.Windows[0]
		checkParts(t, w)
		// 98 requests of 4 clients take 25 rounds.
		if w.Requests != 98 || w.Duration != 500*ms || w.Start != 40*ms || len(w.Sub) < 10 || len(w.Sub) > 20 {
			t.Errorf("%d requests from %v on in %v, %d parts", w.Requests, w.Start, w.Duration, len(w.Sub))
		}
		if want := 98 * 0.020 / 0.5; w.InFlight < want-0.01 || w.InFlight > want+0.01 {
			t.Errorf("%.3f in flight, want %.3f", w.InFlight, want)
		}
		if !slices.Equal(edges, []int64{7, 105}) || len(numbers) != 98 {
			t.Errorf("%v requests at the edges, %d different ones", edges, len(numbers))
		}
	})
}

func TestWindowsByRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		service     time.Duration
		concurrency int
		requests    int
		least, most time.Duration // duration of the window
	}{
		{20 * ms, 4, 300, 1500 * ms, 1600 * ms}, // 200/s
		{ms, 1, 50, 100 * ms, 200 * ms},         // at least one tick
		{time.Second, 1, 12, 11 * time.Second, 12200 * ms},
	} {
		t.Run(fmt.Sprint(c.service), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := at(constant(c.service), c.concurrency)
				o.Requests, o.Length = c.requests, nil
				r, err := Run(t.Context(), o)
				if err != nil || len(r.Windows) != 2 {
					t.Fatalf("%d windows, %v", len(r.Windows), err)
				}
				for _, w := range r.Windows {
					checkParts(t, w)
					if w.Requests < c.requests || w.Duration < c.least || w.Duration > c.most || len(w.Sub) < 10 || len(w.Sub) > 20 || len(w.Flags) > 0 {
						t.Errorf("%d requests in %v, %d parts, flags %v", w.Requests, w.Duration, len(w.Sub), w.Flags)
					}
				}
			})
		})
	}
}

// A server that begins to refuse everything completes no more requests. Failed requests end a
// window, too.
func TestWindowsByRequestsOfAServerThatRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(20 * ms)
		s.refuse = func(n int64) error {
			if n > 100 {
				return errors.New("out of memory")
			}
			return nil
		}
		o := at(s, 2)
		o.Requests, o.Length = 200, nil
		r, err := Run(t.Context(), o)
		if err != nil || len(r.Windows) != 2 {
			t.Fatalf("%d windows, %v", len(r.Windows), err)
		}
		for _, w := range r.Windows {
			checkParts(t, w)
			if w.Requests+w.Errors < 200 || w.Requests+w.Errors > 220 || w.Errors == 0 {
				t.Errorf("%d requests and %d errors, want 200 together", w.Requests, w.Errors)
			}
		}
	})
}

// Budget ends a window whose requests would take longer.
func TestBudgetOfWindowsByRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := at(constant(20*ms), 2)
		o.Requests, o.Length, o.Budget = 150, nil, 2*time.Second
		r, err := Run(t.Context(), o)
		if err != nil || len(r.Windows) != 2 {
			t.Fatalf("%d windows, %v", len(r.Windows), err)
		}
		// 100 requests/s: 150 take 1.5 s. The next tick comes within 0.1 s.
		first, second := r.Windows[0], r.Windows[1]
		if first.Requests < 150 || first.Duration > 1600*ms || second.Requests >= 150 || (first.Duration+second.Duration).Round(100*ms) != 2*time.Second {
			t.Errorf("%d requests in %v, %d in %v", first.Requests, first.Duration, second.Requests, second.Duration)
		}
	})
}

func TestUnansweredRequestsTimeOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(0)
		s.service = func(at time.Duration) time.Duration {
			if at > 1500*ms && at < 1530*ms {
				return -1
			}
			return 20 * ms
		}
		o := at(s, 4)
		o.Timeout = 300 * ms
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		timedOut := 0
		for _, w := range r.Windows {
			timedOut += w.TimedOut
			if w.TimedOut > 0 && (w.Errors != w.TimedOut || w.FirstError != errTimeout.Error() || !slices.Contains(w.Flags, measure.FlagTimeout)) {
				t.Errorf("%d errors, the first %q, flags %v", w.Errors, w.FirstError, w.Flags)
			}
		}
		// Each client loses one request and its connection.
		if timedOut != 4 || s.closed.Load() != 8 || s.inFlight.Load() != 0 {
			t.Errorf("%d timed out, %d connections closed, %d left in flight", timedOut, s.closed.Load(), s.inFlight.Load())
		}
	})
}

// A timeout does not count as an answer: a server that never answers is hung, however many requests
// it gets.
func TestTimeoutsAreNoSignOfLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(-1)
		o := at(s, 2)
		o.Timeout = time.Second
		_, err := Run(t.Context(), o)
		var hung *HungError
		if !errors.As(err, &hung) || hung.Waited > 11*time.Second {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestLostServer(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]func(*testing.T, *server) Options{
		"closed loop": func(_ *testing.T, s *server) Options { return at(s, 4) },
		"open loop":   func(t *testing.T, s *server) Options { return every(t, s, 10*ms) },
	} {
		for _, windows := range []int{2, 4} { // reported at the end, or after a second without a connection
			t.Run(fmt.Sprintf("%s, %d windows", name, windows), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := constant(20 * ms)
					s.down = make(chan struct{})
					time.AfterFunc(1710*ms, func() { close(s.down) })
					o := options(t, s)
					o.More = func(w [][]measure.Window) bool { return len(w[0]) < windows }
					begin := time.Now()
					r, err := run(t.Context(), o, newSleeper)
					var lost *LostError
					if !errors.As(err, &lost) || time.Since(begin) > 3100*ms {
						t.Errorf("ended after %v with %v", time.Since(begin), err)
					}
					// The failure lasts from 0.2 s on.
					if len(r.Windows) != 2 || r.Windows[0].Errors > 0 || r.Windows[1].Errors == 0 {
						t.Errorf("%d windows are left", len(r.Windows))
					}
				})
			})
		}
	}
}

// The connection of the client with the last request is gone, while the connection of the other
// client is open and unused. The server counts as lost.
func TestLostServerOfTheLastRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(20 * ms)
		o := at(s, 2)
		o.Total, o.WarmUp = 10, 0
		var dialled atomic.Int64
		o.Dial = func(ctx context.Context, connection int) (Conn, error) {
			c, err := s.dial(ctx, connection)
			switch {
			case connection > 0:
				return c, err
			case dialled.Add(1) > 1:
				return nil, errors.New("connection refused")
			}
			return brief{c}, err
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		r, err := Run(ctx, o)
		var lost *LostError
		if !errors.As(err, &lost) || time.Since(begin) > 2*time.Second || len(r.Windows) != 1 || r.Windows[0].Requests != 9 {
			t.Errorf("ended after %v with %v, %d windows", time.Since(begin), err, len(r.Windows))
		}
	})
}

// A server that is away for a moment costs only the requests in flight.
func TestConnectionsAreMadeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(20 * ms)
		o := at(s, 3)
		breaks := make(chan struct{})
		time.AfterFunc(1310*ms, func() { close(breaks) })
		o.Dial = func(ctx context.Context, connection int) (Conn, error) {
			c, err := s.dial(ctx, connection)
			if time.Since(s.epoch) < time.Second {
				go func() {
					<-breaks
					c.Interrupt()
				}()
			}
			return c, err
		}
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		m := measure.Measurement{Windows: r.Windows}
		if requests := r.Windows[0].Requests + r.Windows[1].Requests; m.Errors() != 3 || requests < 290 || s.closed.Load() != 6 {
			t.Errorf("%d errors, %d requests, %d connections closed", m.Errors(), requests, s.closed.Load())
		}
	})
}

// brief is a connection that the server closes after each answer.
type brief struct{ Conn }

func (brief) Broken() bool { return true }

func TestConnectionsThatEndWithTheAnswerCostNoRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(20 * ms)
		o := at(s, 2)
		o.Dial = func(ctx context.Context, connection int) (Conn, error) {
			c, err := s.dial(ctx, connection)
			return brief{c}, err
		}
		o.Total, o.WarmUp = 50, 0
		r, err := Run(t.Context(), o)
		if err != nil || r.Windows[0].Requests != 50 || r.Windows[0].Errors != 0 || s.closed.Load() != 50 {
			t.Errorf("%d requests, %d errors, %d connections, %v", r.Windows[0].Requests, r.Windows[0].Errors, s.closed.Load(), err)
		}
	})
}

// decoupled sends several responses, 10 ms apart, and then a null response.
type decoupled struct {
	Conn
	left, null int
}

func (c *decoupled) Slots() int    { return 1 }
func (c *decoupled) Send(int, int) { c.left = 3 + c.null }

func (c *decoupled) Receive() (slot int, final, null bool, err error) {
	time.Sleep(10 * ms)
	c.left--
	return 0, c.left == 0, c.left < c.null, nil
}

func (c *decoupled) Broken() bool { return false }
func (c *decoupled) Interrupt()   {}
func (c *decoupled) Close() error { return nil }

// The latency of a decoupled model's request ends with the last response that is not null.
func TestResponsesOfDecoupledModels(t *testing.T) {
	t.Parallel()
	for null := range 2 {
		synctest.Test(t, func(t *testing.T) {
			o := at(nil, 2)
			o.Dial = func(context.Context, int) (Conn, error) { return &decoupled{null: null}, nil }
			o.Total = 20
			o.Sink = func(r Record) {
				if want := []time.Duration{r.Sent + 10*ms, r.Sent + 20*ms, r.Sent + 30*ms}; !slices.Equal(r.Responses, want) {
					t.Errorf("responses at %v, want %v", r.Responses, want)
				}
			}
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			w := r.Windows[0]
			if w.Requests != 20 || w.Responses != 60 {
				t.Errorf("%d requests, %d responses", w.Requests, w.Responses)
			}
			if mean, _ := (measure.Measurement{Windows: r.Windows}).Estimate(measure.LatencyAvg); mean.Value < 0.02999 || mean.Value > 0.03001 {
				t.Errorf("mean latency %v, want 30 ms", mean.Value)
			}
		})
	}
}

// Sink gets exactly the requests that the windows count.
func TestSinkIsGivenTheWindowsRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(7 * ms)
		s.refuse = func(n int64) error {
			if n%10 == 0 {
				return errors.New("busy")
			}
			return nil
		}
		o := at(s, 5)
		var good, bad int
		var records []Record
		o.Sink = func(r Record) {
			records = append(records, r)
			switch {
			case r.Failed:
				bad++
			case len(r.Responses) == 1:
				good++
			}
		}
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		first, second := r.Windows[0], r.Windows[1]
		if good != first.Requests+second.Requests || bad != first.Errors+second.Errors || good+bad != len(records) || bad == 0 {
			t.Errorf("%d good and %d bad of %d, the windows hold %d and %d", good, bad, len(records), first.Requests+second.Requests, first.Errors+second.Errors)
		}
		for _, r := range records {
			if !r.Failed && (r.Responses[0] < first.Start || r.Responses[0] >= second.Start+second.Duration) {
				t.Errorf("a request answered at %v is of no window", r.Responses[0])
			}
		}
	})
}

// A server stops answering within a fixed number of requests. Only the rest of the requests is
// lost.
func TestBrokenOffCount(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]func(*testing.T, *server) Options{
		"closed loop": func(_ *testing.T, s *server) Options { return at(s, 4) },
		"open loop":   func(t *testing.T, s *server) Options { return every(t, s, 5*ms) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := constant(0)
				s.service = func(at time.Duration) time.Duration {
					if at >= 500*ms {
						return -1
					}
					return 20 * ms
				}
				o := options(t, s)
				o.Total, o.WarmUp = 1000, 0
				r, err := run(t.Context(), o, newSleeper)
				var hung *HungError
				if !errors.As(err, &hung) || len(r.Windows) != 1 {
					t.Fatalf("%d windows, %v", len(r.Windows), err)
				}
				// 200 requests/s in half a second.
				w := r.Windows[0]
				checkParts(t, w)
				if w.Requests != 100 || w.Errors != 0 || w.Duration < 480*ms || w.Duration > 520*ms || w.InFlight < 3.5 || w.InFlight > 4.5 {
					t.Errorf("%d requests, %d errors in %v, %v in flight", w.Requests, w.Errors, w.Duration, w.InFlight)
				}
			})
		})
	}
}
