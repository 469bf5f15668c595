package verify

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tuner/capacity"
	"tuner/capacity/replica"
	"tuner/runner"
	"tuner/runner/load"
	"tuner/search/queuesim"
)

// Each moment gets its requests, in its time: 15 s of 100/s and then of 20/s for each of two replicas
// are 1,500 and 300 requests for one server.
func TestInstantsFollowTheMoments(t *testing.T) {
	t.Parallel()
	moments := []capacity.Moment{{Requests: 3000, Ready: 2}, {Requests: 0, Ready: 2}, {Requests: 600, Ready: 2}}
	for _, cv := range []float64{1, 2} {
		s := instants(moments, 1, cv, 7)
		if !slices.IsSorted(s.before) || !slices.IsSorted(s.counted) {
			t.Fatal("the instants do not ascend")
		}
		count := [3]int{}
		for _, at := range s.counted {
			count[min(int(at/(15*time.Second)), 2)]++
		}
		// The deviation of a count n is cv √n.
		for i, want := range []float64{1500, 0, 300} {
			if off := math.Abs(float64(count[i]) - want); off > 4*cv*math.Sqrt(want)+1 {
				t.Errorf("cv %g: %d requests in moment %d, want %.0f", cv, count[i], i, want)
			}
		}
		if last := s.before[len(s.before)-1]; last > warming || math.Abs(float64(len(s.before))-500) > 4*cv*math.Sqrt(500) {
			t.Errorf("cv %g: a warm-up of %d requests until %v", cv, len(s.before), last)
		}
	}
}

// Twice the scale is twice the requests, and the same seed the same instants.
func TestInstantsScale(t *testing.T) {
	t.Parallel()
	moments := []capacity.Moment{{Requests: 9000, Ready: 3}}
	one, two := instants(moments, 1, 1, 3), instants(moments, 2, 1, 3)
	if ratio := float64(len(two.counted)) / float64(len(one.counted)); math.Abs(ratio-2) > 0.15 {
		t.Errorf("%d and %d requests", len(one.counted), len(two.counted))
	}
	if again := instants(moments, 1, 1, 3); !slices.Equal(again.counted, one.counted) {
		t.Error("other instants for the same seed")
	}
}

// No server has two requests more than another with the fewest requests, or in turns.
func TestBalancers(t *testing.T) {
	t.Parallel()
	for _, how := range []queuesim.Balancer{queuesim.RoundRobin, queuesim.LeastRequests} {
		b := newBalancer(how, 3, 1)
		for n := range 300 {
			b.choose()
			if most, least := slices.Max(b.open), slices.Min(b.open); most-least > 1 {
				t.Fatalf("%s: after %d requests %v are open", how, n+1, b.open)
			}
		}
	}
	b := newBalancer(queuesim.Random, 3, 1)
	for range 3000 {
		b.choose()
	}
	for _, open := range b.open { // 1,000 each, with a deviation of 26
		if open < 880 || open > 1120 {
			t.Errorf("random: %v are open", b.open)
		}
	}
}

// The server with the fewest open requests gets the next one.
func TestLeastRequestsSeesAnswers(t *testing.T) {
	t.Parallel()
	b := newBalancer(queuesim.LeastRequests, 3, 1)
	for range 6 {
		b.choose()
	}
	b.done(1)
	if got := b.choose(); got != 1 {
		t.Errorf("server %d, want 1", got)
	}
}

// server answers each request at once.
type server struct{ answered atomic.Int64 }

func (s *server) Dial(context.Context, int) (load.Conn, error) {
	return &connection{server: s, answers: make(chan struct{}, 1), gone: make(chan struct{})}, nil
}
func (s *server) IsLarge() bool { return false }

type connection struct {
	server  *server
	answers chan struct{}
	once    sync.Once
	gone    chan struct{}
}

func (c *connection) Slots() int    { return 1 }
func (c *connection) Send(int, int) { c.answers <- struct{}{} }
func (c *connection) Receive() (slot int, final, null bool, err error) {
	select {
	case <-c.answers:
		c.server.answered.Add(1)
		return 0, true, false, nil
	case <-c.gone:
		return 0, true, false, context.Canceled
	}
}
func (c *connection) Broken() bool { return false }
func (c *connection) Interrupt()   { c.once.Do(func() { close(c.gone) }) }
func (c *connection) Close() error { return nil }

// Every request of the replay is sent once, and in turns to each server.
func TestReplaySendsAll(t *testing.T) {
	t.Parallel()
	servers := []*server{{}, {}, {}}
	f := fleet{options: Options{Engines: 3}, balancer: newBalancer(queuesim.RoundRobin, 3, 1)}
	for _, s := range servers {
		f.connections = append(f.connections, s)
	}
	at := schedule{before: make([]time.Duration, 30)}
	for i := range 600 {
		at.counted = append(at.counted, time.Duration(i)*time.Millisecond/2)
	}
	v := capacity.Verification{Engines: 3, Rate: 667, Limit: 3600}
	if err := f.replay(t.Context(), at, 1, &v); err != nil {
		t.Fatal(err)
	}
	if v.Failed != 0 || v.Measured.Within != 1 || v.P99Range[0] > v.P99Range[1] {
		t.Errorf("%+v", v)
	}
	for i, s := range servers {
		if n := s.answered.Load(); n != 210 {
			t.Errorf("server %d answered %d requests, want 210", i, n)
		}
	}
}

// On a machine as fast as the plan's, with cores for all, the servers answer as much as replicas do. With
// half the cores they answer half, and twice as slow ones half.
func TestCapacityOfTheMachine(t *testing.T) {
	t.Parallel()
	r := replica.Replica{Rows: 1, Batcher: queuesim.Batcher{Instances: 1, MaxBatch: 1}, Curve: queuesim.ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}}, Capacity: 100}
	piece := capacity.Piece{Moments: []capacity.Moment{{Requests: 1500, Ready: 2}}}
	for _, x := range []struct {
		cores          int
		slowness, want float64
	}{{4, 1, 1}, {2, 1, 0.5}, {4, 2, 0.5}} {
		o := Options{Engines: 4, Threads: 1, Cores: x.cores}
		q := capacity.Question{Limit: 40 * time.Millisecond}
		v := plannedReplay(q, r, slowed(r, x.slowness, o), piece, o)
		if math.Abs(v.Capacity-x.want) > 0.01 || math.Abs(v.Limit-0.04/x.want) > 0.001 || v.PlannedRate != 50 || v.Replicas != 2 {
			t.Errorf("%d cores, %g × as slow: %+v, want the capacity %g", x.cores, x.slowness, v, x.want)
		}
	}
}

// What all servers together take longer is in the simulated rate of all together, and not in a lone request.
func TestShared(t *testing.T) {
	t.Parallel()
	two := queuesim.ServiceCurve{Sizes: []int{1}, Alone: []float64{0.010}, Crowded: []float64{0.011}, Overhead: 0.003, Path: 0.001, Threads: 1}
	one := two
	one.Crowded, one.Overhead, one.Path = nil, 0, 0
	for instances, c := range map[int]queuesim.ServiceCurve{1: one, 2: two} {
		here := replica.Replica{Rows: 1, Batcher: queuesim.Batcher{Instances: instances, MaxBatch: 1}, Curve: c}
		o := Options{Engines: 3, Threads: 1, Cores: 2}
		slow := shared(here, 1.5)
		if got := together(here, o) / together(slow, o); math.Abs(got-1.5) > 0.02 {
			t.Errorf("%d instances: all together answer 1/%.3f of the requests, want 1/1.5", instances, got)
		}
		lone := func(r replica.Replica) float64 {
			return new(queuesim.Fleet).Replay(3, queuesim.RoundRobin, r.Batcher, r.Curve, queuesim.Instants{At: []time.Duration{0}}, 2, queuesim.Options{}).P50
		}
		if got, want := lone(slow), lone(here); instances > 1 && math.Abs(got/want-1) > 1e-9 {
			t.Errorf("a lone request takes %g s, and took %g s", got, want)
		}
	}
}

// A fleet that cannot start says why, and impossible replays are refused before that.
func TestImpossibleReplays(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Engines: 0, Length: time.Minute}, {Engines: MostEngines + 1, Length: time.Minute}, {Engines: 2, Length: time.Second}, {Engines: 2, Length: 2 * time.Hour}} {
		o.Launch = func(context.Context) (runner.Engine, error) {
			t.Error("a server was started")
			return nil, context.Canceled
		}
		if _, err := Run(t.Context(), capacity.Question{}, replica.Replica{}, capacity.Scaling{}, o); err == nil {
			t.Errorf("%+v is possible", o)
		}
	}
}

// slowServer answers one request at a time, each after 20 ms.
type slowServer struct{ turn chan struct{} }

func (s slowServer) Dial(context.Context, int) (load.Conn, error) {
	return &slowConnection{connection{gone: make(chan struct{})}, s.turn}, nil
}
func (s slowServer) IsLarge() bool { return false }

type slowConnection struct {
	connection
	turn chan struct{}
}

func (c *slowConnection) Send(int, int) {}
func (c *slowConnection) Receive() (slot int, final, null bool, err error) {
	select {
	case c.turn <- struct{}{}:
		time.Sleep(20 * time.Millisecond)
		<-c.turn
		return 0, true, false, nil
	case <-c.gone:
		return 0, true, false, context.Canceled
	}
}

// Two servers of which each takes 20 ms where the simulation says 10 are slower by the factor 2 together.
func TestSharing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := replica.Replica{Rows: 1, Batcher: queuesim.Batcher{Instances: 1, MaxBatch: 1}, Curve: queuesim.ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}}, Capacity: 100}
		f := fleet{options: Options{Engines: 2, Threads: 1, Cores: 2}, balancer: newBalancer(queuesim.LeastRequests, 2, 1)}
		for range 2 {
			f.connections = append(f.connections, slowServer{make(chan struct{}, 1)})
		}
		got, err := f.sharing(t.Context(), slowed(r, 1, f.options))
		if err != nil || math.Abs(got-2) > 0.05 {
			t.Errorf("%g, %v; want 2", got, err)
		}
	})
}
