package load

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tuner/measure"
)

// batcher is a fake server with instances. Each instance takes the waiting requests, up to a batch
// size. Its time grows with the batch and varies by 3 %.
type batcher struct {
	queue chan chan struct{} // channels that are closed as the answer
	stop  chan struct{}
}

// newBatcher runs until the test ends. A batch of n takes (1 + n) × unit.
func newBatcher(t *testing.T, instances, largest int, unit time.Duration) *batcher {
	b := &batcher{queue: make(chan chan struct{}, 1000), stop: make(chan struct{})}
	var serving sync.WaitGroup
	for i := range instances {
		serving.Go(func() { b.serve(rand.New(rand.NewPCG(uint64(i), 1)), largest, unit) })
	}
	t.Cleanup(func() {
		close(b.stop)
		serving.Wait()
	})
	return b
}

func (b *batcher) serve(random *rand.Rand, largest int, unit time.Duration) {
	for {
		var batch []chan struct{}
		select {
		case <-b.stop:
			return
		case first := <-b.queue:
			batch = append(batch, first)
		}
		for len(batch) < largest && len(b.queue) > 0 {
			batch = append(batch, <-b.queue)
		}
		time.Sleep(time.Duration(float64(unit) * float64(1+len(batch)) * math.Exp(0.03*random.NormFloat64())))
		for _, answer := range batch {
			close(answer)
		}
	}
}

// batched is a connection to a batcher.
type batched struct {
	b           *batcher
	answer      chan struct{}
	interrupted chan struct{}
}

func (c *batched) Slots() int { return 1 }

func (c *batched) Send(int, int) {
	c.answer = make(chan struct{})
	c.b.queue <- c.answer
}

func (c *batched) Receive() (slot int, final, null bool, err error) {
	select {
	case <-c.answer:
		return 0, true, false, nil
	case <-c.interrupted:
		return 0, false, false, errInterrupted
	}
}

func (c *batched) Broken() bool { return false }
func (c *batched) Interrupt()   { close(c.interrupted) }
func (c *batched) Close() error { return nil }

// The first requests of a closed loop are all sent at once, and wait less than requests that come
// to a full queue. 64 clients of a server that takes 10 ms per request wait for 640 ms. Until the
// queue has filled, the mean is half of that.
func TestWarmUpFillsTheQueue(t *testing.T) {
	t.Parallel()
	for _, unsettled := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			server := newBatcher(t, 1, 1, 5*ms)
			o := at(constant(0), 64)
			o.Dial = func(context.Context, int) (Conn, error) {
				return &batched{b: server, interrupted: make(chan struct{})}, nil
			}
			o.WarmUp, o.Unsettled = 100*ms, unsettled
			o.Length = func([]time.Duration) time.Duration { return 500 * ms }
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			mean, _ := measure.Measurement{Windows: r.Windows[:1]}.Estimate(measure.LatencyAvg)
			if math.Abs(mean.Value/0.640-1) > 0.05 || r.WarmUp > 800*ms {
				t.Errorf("unsettled %t: a mean latency of %.0f ms after a warm-up of %v", unsettled, 1e3*mean.Value, r.WarmUp)
			}
			// a full queue is not yet a steady load
			if isFlagged := slices.Contains(r.Windows[0].Flags, measure.FlagUnsteady); isFlagged == unsettled {
				t.Errorf("unsettled %t: flagged unsteady: %t", unsettled, isFlagged)
			}
		})
	}
}

// A slow server answers the first request, and then the 15 others together, which takes 8 s. After
// that, all 16 requests are in one batch. Windows hold two answers to it, so they must last two
// batches of 16, although the limit of the warm-up has passed before the first one.
func TestWarmUpOnASlowBatchingServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newBatcher(t, 1, 16, 500*ms)
		o := at(constant(0), 16)
		o.Dial = func(context.Context, int) (Conn, error) {
			return &batched{b: server, interrupted: make(chan struct{})}, nil
		}
		o.WarmUp, o.Length = 5*time.Second, func(p99 []time.Duration) time.Duration { return 2 * p99[0] }
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range r.Windows {
			if w.Duration < 15*time.Second || w.Requests == 0 {
				t.Errorf("a window of %v has %d requests", w.Duration, w.Requests)
			}
		}
	})
}

// On a batching server the warm-up must be short, since a campaign pays for it in every trial. The
// windows must show the server's throughput without flags.
func TestWarmUpOnABatchingServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		instances, largest, concurrency int
		unit                            time.Duration
	}{
		"one instance":     {1, 8, 16, 5 * ms},
		"two instances":    {2, 8, 32, 5 * ms},
		"under capacity":   {2, 8, 4, 5 * ms},
		"deep queue":       {1, 4, 64, 2 * ms},
		"without batching": {1, 1, 4, 10 * ms},
		"one client":       {1, 8, 1, 20 * ms},
		"one client, slow": {1, 1, 1, 200 * ms},
		"fast":             {2, 16, 32, ms / 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := newBatcher(t, c.instances, c.largest, c.unit)
				o := at(constant(0), c.concurrency)
				o.Dial = func(context.Context, int) (Conn, error) {
					return &batched{b: server, interrupted: make(chan struct{})}, nil
				}
				var p99 time.Duration
				o.Length = func(seen []time.Duration) time.Duration {
					p99 = seen[0]
					return 4 * time.Second
				}
				r, err := Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("warm-up %v, p99 %v, %d requests in %v, flags %v", r.WarmUp, p99, r.Windows[0].Requests, r.Windows[0].Duration, r.Windows[0].Flags)
				m := measure.Measurement{Windows: r.Windows}
				mean, _ := m.Estimate(measure.LatencyAvg)
				if most := time.Duration(6*mean.Value*float64(time.Second)) + 400*ms; r.WarmUp > most {
					t.Errorf("warm-up of %v, want at most %v", r.WarmUp, most)
				}
				if flags := m.Flags(); len(flags) > 0 {
					t.Errorf("flags %v", flags)
				}
				// Little's law: requests = concurrency × time / latency.
				if want := float64(c.concurrency) / mean.Value; math.Abs(float64(r.Windows[0].Requests)/4/want-1) > 0.1 {
					t.Errorf("%d requests in 4 s, want %.0f/s", r.Windows[0].Requests, want)
				}
			})
		})
	}
}
