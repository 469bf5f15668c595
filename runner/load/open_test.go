package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tuner/measure"
	"tuner/measure/arrivals"
)

// every returns options for an open loop with a request at each distance, and two windows of 1 s.
func every(t *testing.T, s *server, distance time.Duration) Options {
	t.Helper()
	rate := float64(time.Second) / float64(distance)
	arrivals, err := arrivals.Constant(rate)
	if err != nil {
		t.Fatal(err)
	}
	o := at(s, 0)
	o.Load, o.Arrivals = measure.Load{RequestRate: rate, BatchSize: 1}, arrivals
	return o
}

// oneServer answers one request after the other, in the order of their arrival.
type oneServer struct {
	mu       sync.Mutex
	free     time.Duration // when it has answered all requests so far
	services []time.Duration
	n        int
}

func (s *oneServer) serve(at time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = max(s.free, at) + s.services[s.n%len(s.services)]
	s.n++
	return s.free - at
}

// Latencies of a server with one worker follow from the schedule and the service times. The formula
// is Lindley's recursion (The Theory of Queues with a Single Server, 1952). A request begins when
// it arrives, or when the one before it ends.
func TestOpenLoopWaitsFollowLindley(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		queue := &oneServer{}
		for range 1000 { // busy for 85 % of the time
			queue.services = append(queue.services, time.Duration(random.ExpFloat64()*float64(17*ms)))
		}
		s := constant(0)
		s.service = queue.serve
		o := every(t, s, 20*ms)
		o.Arrivals, _ = arrivals.Poisson(50, 5)
		schedule, _ := arrivals.Poisson(50, 5)
		o.WarmUp = 0
		o.Length = func([]time.Duration) time.Duration { return 5 * time.Second }
		var records []Record
		o.Sink = func(r Record) { records = append(records, r) }
		r, err := run(t.Context(), o, newSleeper)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(records, func(a, b Record) int { return a.Request - b.Request })
		first := schedule.Next()
		var due, free, longest time.Duration
		for i, got := range records {
			if got.Request != i || got.Scheduled != due || got.Sent != due {
				t.Fatalf("record %d is of request %d, due %v, sent %v, want %v", i, got.Request, got.Scheduled, got.Sent, due)
			}
			free = max(free, due) + queue.services[i]
			longest = max(longest, free-due)
			if len(got.Responses) != 1 || got.Responses[0] != free {
				t.Fatalf("request %d was answered at %v, want %v", i, got.Responses, free)
			}
			due = schedule.Next() - first
		}
		m := measure.Measurement{Windows: r.Windows}
		if p50, _ := m.Estimate(measure.LatencyP50); len(records) < 450 || longest < 50*ms || p50.Value < 0.017 {
			t.Errorf("%d requests, the longest took %v, the median %v: nobody waited", len(records), longest, p50)
		}
		if flags := m.Flags(); len(flags) > 0 {
			t.Errorf("flags %v", flags)
		}
		if r.Windows[0].Late != 0 || r.Windows[0].SendDelay.Quantile(1) > 2*time.Microsecond {
			t.Errorf("%d were late, by up to %v", r.Windows[0].Late, r.Windows[0].SendDelay.Quantile(1))
		}
	})
}

// A server stalls for half a second in every five. Requests that come meanwhile are answered at the
// end of the stall. A closed loop of one client has one request in the stall and sees 1 of 900
// requests delayed. In an open loop of 100/s it is one in ten.
func TestStallShowsInAnOpenLoopAlone(t *testing.T) {
	t.Parallel()
	stalling := func(at time.Duration) time.Duration {
		if phase := at % (5 * time.Second); phase >= 2*time.Second && phase < 2500*ms {
			return 2500*ms - phase + 5*ms
		}
		return 5 * ms
	}
	p99 := func(t *testing.T, o Options) time.Duration {
		o.WarmUp = 0
		o.Length = func([]time.Duration) time.Duration { return 5 * time.Second }
		r, err := run(t.Context(), o, newSleeper)
		if err != nil {
			t.Fatal(err)
		}
		if sub := r.Windows[0].Sub; sub[4].Requests > 1 || sub[5].Requests < 90 || r.Windows[0].Dropped > 0 {
			t.Errorf("%d requests in the tenth of the stall, %d in the next, %d dropped", sub[4].Requests, sub[5].Requests, r.Windows[0].Dropped)
		}
		m := measure.Measurement{Windows: r.Windows}
		e, _ := m.Estimate(measure.LatencyP99)
		return time.Duration(e.Value * float64(time.Second))
	}
	synctest.Test(t, func(t *testing.T) {
		s := constant(0)
		s.service = stalling
		if got := p99(t, at(s, 1)); got > 6*ms {
			t.Errorf("p99 of the closed loop is %v, want 5 ms", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := constant(0)
		s.service = stalling
		// 50 of 500 requests wait 505, 495 … 15 ms. The sixth longest of 500 is the p99: 455 ms.
		if got := p99(t, every(t, s, 10*ms)); got < 450*ms || got > 460*ms {
			t.Errorf("p99 of the open loop is %v, want 455 ms", got)
		}
	})
}

func TestRequestsBeyondTheBoundAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(950 * ms)
		o := every(t, s, 100*ms)
		o.MaxInFlight, o.WarmUp = 3, 0
		r, err := run(t.Context(), o, newSleeper)
		if err != nil {
			t.Fatal(err)
		}
		w := r.Windows[1]
		// Ten instants a second. Only the first three find fewer than three requests in flight.
		if w.Scheduled != 10 || w.Dropped != 7 || w.Requests != 3 || !slices.Contains(w.Flags, measure.FlagDropped) {
			t.Errorf("%d scheduled, %d dropped, %d completed, flags %v", w.Scheduled, w.Dropped, w.Requests, w.Flags)
		}
		if s.peaks[2].Load() == 0 || s.inFlight.Load() != 0 || w.InFlight < 2.84 || w.InFlight > 2.86 {
			t.Errorf("%d sent with 3 in flight, %.2f in the mean, %d left", s.peaks[2].Load(), w.InFlight, s.inFlight.Load())
		}
		if r.Unfinished != 2 || r.Waited != 900*ms { // those of 1.1 and 1.2 s, at 2 s
			t.Errorf("%d unfinished, the first for %v", r.Unfinished, r.Waited)
		}
	})
}

// Requests that find no connection wait for one. They are late, and their latency includes the
// wait.
func TestLateRequestsCountFromTheSchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(500 * ms)
		o := every(t, s, 10*ms)
		o.WarmUp = 0
		o.More = func(windows [][]measure.Window) bool { return len(windows[0]) < 3 }
		o.Dial = func(ctx context.Context, connection int) (Conn, error) {
			if connection >= firstConnections {
				time.Sleep(300 * ms)
			}
			return s.dial(ctx, connection)
		}
		r, err := run(t.Context(), o, newSleeper)
		if err != nil {
			t.Fatal(err)
		}
		first, last := r.Windows[0], r.Windows[2]
		// 50 requests are in flight. At first there are only 16 connections and at most 4 spare
		// ones.
		if first.Late < 5 || !slices.Contains(first.Flags, measure.FlagLate) || first.SendDelay.Quantile(1) < 50*ms {
			t.Errorf("%d of %d late, by up to %v, flags %v", first.Late, first.Requests, first.SendDelay.Quantile(1), first.Flags)
		}
		whole, sent := measure.Histogram{}, measure.Histogram{}
		for _, sub := range first.Sub {
			whole, sent = measure.Merge(whole, sub.Latency), measure.Merge(sent, sub.Service)
		}
		if sent.Quantile(1) > 501*ms || whole.Quantile(1) < 550*ms || whole.Count() != sent.Count() {
			t.Errorf("longest latency %v, %v since sending", whole.Quantile(1), sent.Quantile(1))
		}
		if last.Late > 0 || last.Requests != 100 || len(last.Flags) > 0 {
			t.Errorf("with enough connections %d of %d are late, flags %v", last.Late, last.Requests, last.Flags)
		}
	})
}

func TestBacklogIsFlagged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(0)
		// requests come every 10 ms
		s.service = (&oneServer{services: []time.Duration{15 * ms}}).serve
		o := every(t, s, 10*ms)
		o.WarmUp = time.Second
		r, err := run(t.Context(), o, newSleeper)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []measure.Flag{measure.FlagBacklog, measure.FlagUnsteady} {
			if w := r.Windows[1]; !slices.Contains(w.Flags, want) {
				t.Errorf("%d of %d answered: flags %v lack %q", w.Requests, w.Scheduled, w.Flags, want)
			}
		}
		if r.Unfinished < 50 {
			t.Errorf("%d unfinished", r.Unfinished)
		}
	})
}

// A server that is behind answers all that it got, however long its queue is: nothing is cancelled while answers come.
func TestAQueueIsWorkedOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(0)
		// requests come every 10 ms, so nine seconds of work are left
		s.service = (&oneServer{services: []time.Duration{40 * ms}}).serve
		o := every(t, s, 10*ms)
		o.WarmUp = time.Second
		r, err := run(t.Context(), o, newSleeper)
		if err != nil || r.Unfinished < 200 || s.givenUp.Load() != 0 {
			t.Errorf("%d unfinished at the end, %d of them given up, %v", r.Unfinished, s.givenUp.Load(), err)
		}
	})
}

// Unfinished counts the requests that a stalled server leaves unanswered: those in flight, and
// those that wait for a connection. They count even if no answer ever comes.
func TestUnansweredAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(0)
		s.service = func(at time.Duration) time.Duration {
			if at > 1495*ms {
				return -1
			}
			return 20 * ms
		}
		o := every(t, s, 10*ms)
		o.WarmUp = 0
		// no instant of the schedule is at an edge
		o.Length = func([]time.Duration) time.Duration { return 1002500 * time.Microsecond }
		o.Dial = func(ctx context.Context, connection int) (Conn, error) {
			if connection < firstConnections {
				return s.dial(ctx, connection)
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		r, err := run(t.Context(), o, newSleeper)
		if err != nil {
			t.Fatal(err)
		}
		// They are due at 1.50, 1.51 … 2.00 s, and 16 of them have a connection. The windows end at
		// 2.005 s.
		if r.Unfinished != 51 || r.Waited.Round(ms) != 505*ms || s.inFlight.Load() != 0 {
			t.Errorf("%d unfinished, the first for %v, %d left in flight; want 51 for 505 ms", r.Unfinished, r.Waited, s.inFlight.Load())
		}
	})
}

func TestOpenLoopOfAServerThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		service time.Duration
		refuse  error
		want    any
	}{
		"refuses": {ms, errors.New("no such model"), new(*RefusedError)},
		"hangs":   {-1, nil, new(*HungError)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := constant(c.service)
				s.refuse = func(int64) error { return c.refuse }
				o := every(t, s, 10*ms)
				o.MaxInFlight = 100
				if _, err := run(t.Context(), o, newSleeper); !errors.As(err, c.want) {
					t.Errorf("ended with %v", err)
				}
				if s.inFlight.Load() != 0 {
					t.Errorf("%d requests were left in flight", s.inFlight.Load())
				}
			})
		})
	}
}

// A schedule with long pauses is not a hang.
func TestPausesOfTheScheduleAreNoHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := every(t, constant(5*ms), 30*time.Second)
		o.Length = func([]time.Duration) time.Duration { return time.Minute }
		r, err := run(t.Context(), o, newSleeper)
		if err != nil || r.Windows[0].Requests != 2 || r.Windows[1].Requests != 2 {
			t.Errorf("%d windows, %v", len(r.Windows), err)
		}
	})
}

func TestCancelledOpenLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := constant(time.Minute)
		o := every(t, s, 10*ms)
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		time.AfterFunc(1500*ms, func() { cancel(enough) })
		begin := time.Now()
		if _, err := run(ctx, o, newSleeper); !errors.Is(err, enough) || time.Since(begin) > 1600*ms {
			t.Errorf("ended after %v with %v", time.Since(begin), err)
		}
		if s.inFlight.Load() != 0 {
			t.Errorf("%d requests were left in flight", s.inFlight.Load())
		}
	})
}

// With real time, the precise pacer and large requests, no request is lost, and none is sent before
// its instant. The race detector can check it.
func TestOpenLoopInRealTime(t *testing.T) {
	t.Parallel()
	for name, large := range map[string]bool{"small": false, "large": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := constant(3 * ms)
			o := every(t, s, ms)
			o.Arrivals, _ = arrivals.Poisson(1000, 3)
			o.Large, o.Total, o.WarmUp = large, 400, 0
			var records []Record
			o.Sink = func(r Record) { records = append(records, r) }
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			w := r.Windows[0]
			if w.Requests != 400 || w.Scheduled != 400 || w.Dropped != 0 || len(records) != 400 || s.sent.Load() != 400 {
				t.Errorf("%d of %d completed, %d dropped, %d records", w.Requests, w.Scheduled, w.Dropped, len(records))
			}
			for _, r := range records {
				if r.Sent < r.Scheduled || r.Responses[0] < r.Sent+3*ms {
					t.Errorf("request %d was due at %v, sent at %v, answered at %v", r.Request, r.Scheduled, r.Sent, r.Responses)
				}
			}
		})
	}
}

func TestWaiterIsNeverEarly(t *testing.T) {
	t.Parallel()
	for _, sleeps := range []bool{false, true} {
		done := make(chan struct{})
		go func() { // the thread ends with the goroutine
			defer close(done)
			epoch := time.Now()
			now := func() time.Duration { return time.Since(epoch) }
			w := newWaiter(now, sleeps)
			for i := range 100 {
				at := time.Duration(i) * ms / 3
				if w.until(at); now() < at {
					t.Errorf("instant %v: woken at %v", at, now())
				}
			}
		}()
		<-done
	}
}

// With an order, each instant of the schedule sends the request that the order names, round and round.
func TestRequestsFollowTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := every(t, constant(ms), 100*ms)
		o.Order, o.WarmUp, o.Total = []int{7, 2, 7, 5}, 0, 6
		var sent []int
		o.Sink = func(r Record) { sent = append(sent, r.Request) }
		if _, err := run(t.Context(), o, newSleeper); err != nil {
			t.Fatal(err)
		}
		if want := []int{7, 2, 7, 5, 7, 2}; !slices.Equal(sent, want) {
			t.Errorf("sent %v, want %v", sent, want)
		}
	})
}
