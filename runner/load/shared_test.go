package load

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tuner/measure"
)

// sharing has connections with several slots to a fake server.
type sharing struct {
	*server
	slots int
	fewer int // slots of the connections after the first; 0: as many

	mu    sync.Mutex
	conns []*shared
}

func (s *sharing) dial(context.Context, int) (Conn, error) {
	if s.isDown() {
		return nil, errors.New("connection refused")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := s.slots
	if len(s.conns) > 0 {
		slots = cmp.Or(s.fewer, slots)
	}
	c := &shared{s: s, asked: make([]*asked, slots), answers: make(chan *asked, 100), closed: make(chan struct{}), interrupted: make(chan struct{})}
	s.conns = append(s.conns, c)
	return c, nil
}

// opened returns the connections so far.
func (s *sharing) opened() []*shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.conns)
}

// shared is a connection with several slots.
type shared struct {
	s           *sharing
	asked       []*asked    // by slot; nil: nothing is in flight
	most        int         // largest number in flight at once
	answers     chan *asked // answers that have arrived
	leaving     atomic.Bool // the server takes no more requests
	closed      chan struct{}
	once        sync.Once
	interrupted chan struct{}
}

// asked is a request and its answer.
type asked struct {
	slot    int
	refused error
}

func (c *shared) Slots() int { return len(c.asked) }

func (c *shared) Send(slot, _ int) {
	a := &asked{slot: slot}
	n := c.s.sent.Add(1)
	if c.asked[slot] == nil { // otherwise the request in the slot is given up
		c.s.peaks[min(c.s.inFlight.Add(1), 3)-1].Add(1)
	}
	if c.leaving.Load() {
		a.refused = errors.New("it was sent nevertheless")
	} else if c.s.refuse != nil {
		a.refused = c.s.refuse(n)
	}
	c.asked[slot] = a
	busy := 0
	for _, other := range c.asked {
		if other != nil {
			busy++
		}
	}
	c.most = max(c.most, busy)
	d := c.s.service(time.Since(c.s.epoch))
	if a.refused != nil {
		d = 0
	}
	if d >= 0 {
		time.AfterFunc(d, func() { c.answers <- a })
	}
}

func (c *shared) Receive() (slot int, final, null bool, err error) {
	for {
		select {
		case a := <-c.answers:
			if c.asked[a.slot] == a {
				return c.tell(a.slot, a.refused)
			}
		case <-c.interrupted:
			return c.tell(c.first(), errInterrupted)
		case <-c.closed:
			return c.tell(c.first(), unanswered{errors.New("EOF")})
		}
	}
}

// first returns a slot with a request in flight.
func (c *shared) first() int {
	return slices.IndexFunc(c.asked, func(a *asked) bool { return a != nil })
}

func (c *shared) tell(slot int, err error) (int, bool, bool, error) {
	c.asked[slot] = nil
	c.s.inFlight.Add(-1)
	return slot, true, false, err
}

func (c *shared) Broken() bool {
	select {
	case <-c.interrupted:
	case <-c.closed:
	default:
		return c.leaving.Load()
	}
	return true
}

func (c *shared) Interrupt() { c.once.Do(func() { close(c.interrupted) }) }

func (c *shared) Close() error {
	c.s.server.closed.Add(1)
	for c.first() >= 0 { // these were given up
		_, _, _, _ = c.tell(c.first(), nil)
	}
	return nil
}

// sharedAt is at with connections of 4 slots.
func sharedAt(s *sharing, concurrency int) Options {
	s.slots = 4
	o := at(s.server, concurrency)
	o.Dial = s.dial
	return o
}

// errorsOf counts the failed requests, and those of them that timed out.
func errorsOf(windows []measure.Window) (failed, timedOut int) {
	for _, w := range windows {
		failed, timedOut = failed+w.Errors, timedOut+w.TimedOut
	}
	return failed, timedOut
}

// The number of requests in flight over shared connections is the concurrency. They are as fast as
// over separate connections.
func TestSharedConnectionsKeepTheConcurrency(t *testing.T) {
	t.Parallel()
	for concurrency, want := range map[int][]int{1: {1}, 4: {4}, 6: {3, 3}, 10: {4, 3, 3}} {
		synctest.Test(t, func(t *testing.T) {
			s := &sharing{server: constant(20 * ms)}
			o := sharedAt(s, concurrency)
			o.Total, o.WarmUp, o.Ramp = 20*concurrency, 0, []int{1, 5}
			numbers := map[int]int{}
			o.Sink = func(r Record) {
				numbers[r.Request]++
				if r.Failed || len(r.Responses) != 1 || r.Responses[0]-r.Sent != 20*ms {
					t.Errorf("request %d, sent at %v: answers at %v", r.Request, r.Sent, r.Responses)
				}
			}
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			w := r.Windows[0]
			checkParts(t, w)
			if w.Requests != 20*concurrency || w.Duration != 400*ms || len(numbers) != w.Requests || w.SendDelay.Count() != 19*concurrency {
				t.Errorf("concurrency %d: %d requests, %d different ones, in %v, %d send delays", concurrency, w.Requests, len(numbers), w.Duration, w.SendDelay.Count())
			}
			if w.InFlight < float64(concurrency)-0.01 || w.InFlight > float64(concurrency)+0.01 {
				t.Errorf("%v in flight, want %d", w.InFlight, concurrency)
			}
			var most []int
			for _, c := range s.conns {
				most = append(most, c.most)
			}
			if !slices.Equal(most, want) || s.closed.Load() != int64(len(want)) || s.inFlight.Load() != 0 {
				t.Errorf("concurrency %d: %v in flight on the connections, want %v; %d closed, %d left in flight", concurrency, most, want, s.closed.Load(), s.inFlight.Load())
			}
		})
	}
}

// A request that times out is given up. The requests beside it do not suffer. A later answer to it
// is ignored.
func TestSharedRequestTimesOutAlone(t *testing.T) {
	t.Parallel()
	for name, late := range map[string][]time.Duration{
		"never": {-1},
		// Requests sent at 740 ms are found late at the tick of 1,100 ms or with the answers of
		// 1,120 ms. Their slots are used again 20 ms later.
		"too late": {370 * ms, 390 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &sharing{server: constant(0)}
				var calls atomic.Int64
				s.service = func(time.Duration) time.Duration {
					if i := int(calls.Add(1)) - 149; i >= 0 && i < len(late) {
						return late[i]
					}
					return 20 * ms
				}
				o := sharedAt(s, 4)
				o.Timeout = 300 * ms
				o.Sink = func(r Record) {
					if !r.Failed && r.Responses[0]-r.Sent != 20*ms {
						t.Errorf("request %d took %v", r.Request, r.Responses[0]-r.Sent)
					}
				}
				r, err := Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if failed, timedOut := errorsOf(r.Windows); failed != len(late) || timedOut != failed || len(s.conns) != 1 || s.inFlight.Load() != 0 {
					t.Errorf("%d failed, %d timed out, %d connections, %d left in flight", failed, timedOut, len(s.conns), s.inFlight.Load())
				}
			})
		})
	}
}

// A connection that takes fewer requests than the first one, as of another server behind the same
// address, is refused: at the beginning, and in place of one that was given up.
func TestConnectionsWithFewerSlotsAreRefused(t *testing.T) {
	t.Parallel()
	const want = "it takes 2 requests in flight, and needs to take 4 as the first one"
	synctest.Test(t, func(t *testing.T) {
		s := &sharing{server: constant(20 * ms), fewer: 2}
		if _, err := Run(t.Context(), sharedAt(s, 8)); err == nil || !strings.Contains(err.Error(), "cannot open connection 2: "+want) {
			t.Errorf("at the beginning: %v", err)
		}
		if opened := len(s.opened()); s.closed.Load() != int64(opened) {
			t.Errorf("%d of %d connections are closed", s.closed.Load(), opened)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &sharing{server: constant(0), fewer: 2}
		s.service = func(at time.Duration) time.Duration {
			if at > 1500*ms {
				return -1
			}
			return 20 * ms
		}
		o := sharedAt(s, 4)
		o.Timeout = 300 * ms
		var lost *LostError
		if _, err := Run(t.Context(), o); !errors.As(err, &lost) || !strings.Contains(err.Error(), want) {
			t.Errorf("in place of another: %v", err)
		}
	})
}

// If nothing else is in flight on the connection, the connection is given up with the requests.
func TestSharedConnectionTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sharing{server: constant(0)}
		s.service = func(at time.Duration) time.Duration {
			if at > 1500*ms && at < 1530*ms {
				return -1
			}
			return 20 * ms
		}
		o := sharedAt(s, 4)
		o.Timeout = 300 * ms
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if failed, timedOut := errorsOf(r.Windows); failed != 4 || timedOut != 4 || len(s.conns) != 2 || s.inFlight.Load() != 0 {
			t.Errorf("%d failed, %d timed out, %d connections, %d left in flight", failed, timedOut, len(s.conns), s.inFlight.Load())
		}
	})
}

// A server may close a connection, or announce that it will. No request is lost, and unanswered
// ones are sent once more.
func TestSharedConnectionsThatTheServerEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    func(c *shared)
		resent int
	}{
		"closed":    {func(c *shared) { close(c.closed) }, 4},
		"announced": {func(c *shared) { c.leaving.Store(true) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &sharing{server: constant(20 * ms)}
				time.AfterFunc(1010*ms, func() { c.end(s.opened()[1]) })
				r, err := Run(t.Context(), sharedAt(s, 8))
				if err != nil {
					t.Fatal(err)
				}
				if failed, _ := errorsOf(r.Windows); failed != 0 || r.Resent != c.resent || len(s.conns) != 3 || s.inFlight.Load() != 0 {
					t.Errorf("%d failed, the first with %q, %d sent once more, %d connections, %d left in flight", failed, r.Windows[0].FirstError, r.Resent, len(s.conns), s.inFlight.Load())
				}
				if r.Windows[1].Requests < 396 || r.Windows[1].Requests > 404 { // 8 × 50/s
					t.Errorf("%d requests in the second window, want 400", r.Windows[1].Requests)
				}
			})
		})
	}
}

// A refused request does not delay those beside it. The next request in its slot waits.
func TestSharedRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sharing{server: constant(20 * ms)}
		s.refuse = func(n int64) error {
			if n%3 == 0 {
				return errors.New("queue full")
			}
			return nil
		}
		r, err := Run(t.Context(), sharedAt(s, 2))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range r.Windows {
			// The third of each three requests is refused when the one beside it is sent. Its slot
			// continues after that one's answer. In 60 ms, 4 are answered and 2 refused.
			if w.Requests < 60 || w.Requests > 73 || w.Errors < 30 || w.Errors > 37 {
				t.Errorf("%d requests, %d errors, want about 67 and 33", w.Requests, w.Errors)
			}
		}
	})
}

// A server that refuses everything does not get more requests for it. A server that stops answering
// is noticed.
func TestSharedConnectionsToABadServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		service time.Duration
		refuse  error
		want    any
		most    int64 // requests
	}{
		"refuses": {time.Second, errors.New("no such model"), new(*RefusedError), 4 * (8 + 10)},
		"hangs":   {-1, nil, new(*HungError), 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &sharing{server: constant(c.service)}
				s.refuse = func(int64) error { return c.refuse }
				if _, err := Run(t.Context(), sharedAt(s, 4)); !errors.As(err, c.want) {
					t.Errorf("ended with %v", err)
				}
				if s.inFlight.Load() != 0 || s.closed.Load() != int64(len(s.conns)) || s.sent.Load() > c.most {
					t.Errorf("%d left in flight, %d of %d connections closed, %d sent", s.inFlight.Load(), s.closed.Load(), len(s.conns), s.sent.Load())
				}
			})
		})
	}
}

// A lost server is noticed, whatever was in flight.
func TestSharedConnectionsToALostServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sharing{server: constant(20 * ms)}
		s.down = make(chan struct{})
		time.AfterFunc(1010*ms, func() {
			close(s.down)
			for _, c := range s.opened() {
				close(c.closed)
			}
		})
		o := sharedAt(s, 8)
		o.More = func(w [][]measure.Window) bool { return len(w[0]) < 10 }
		begin := time.Now()
		r, err := Run(t.Context(), o)
		var lost *LostError
		if !errors.As(err, &lost) || time.Since(begin) > 2200*ms {
			t.Errorf("ended after %v with %v", time.Since(begin), err)
		}
		if s.inFlight.Load() != 0 || r.Resent != 0 {
			t.Errorf("%d left in flight, %d sent once more", s.inFlight.Load(), r.Resent)
		}
	})
}
