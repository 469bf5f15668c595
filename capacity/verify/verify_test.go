package verify

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tuner/capacity"
	"tuner/capacity/replica"
	"tuner/engine/api"
	"tuner/measure"
	"tuner/runner"
	"tuner/runner/load"
	"tuner/runner/meter"
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

// Every request of the replay is sent once, and noted with its server: to all in turns, or to one alone.
func TestReplaySendsAll(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		servers := []*server{{}, {}, {}}
		f := fleet{options: Options{Engines: 3, Length: time.Second}, planned: replica.Replica{Rows: 1}}
		for _, s := range servers {
			f.connections = append(f.connections, s)
		}
		at := schedule{before: make([]time.Duration, 30)}
		for i := range 600 {
			at.counted = append(at.counted, time.Duration(i)*time.Millisecond/2)
		}
		g, want := f.every(queuesim.RoundRobin), []int{210, 210, 210}
		if alone {
			g, want = one(1), []int{0, 630, 0}
		}
		var all seen
		if err := f.replay(t.Context(), at, g, &all); err != nil {
			t.Fatal(err)
		}
		v := capacity.Verification{Limit: 3600}
		if err := all.measured(&v); err != nil || v.Failed != 0 || v.Measured.Within != 1 || v.P99Range[0] > v.P99Range[1] {
			t.Errorf("%v %+v", err, v)
		}
		noted := make([]int, 3)
		for i, s := range all.sent {
			noted[s.server]++
			if s.at < 0 || i > 0 && s.at < all.sent[i-1].at {
				t.Fatalf("request %d was sent at %v", i, s.at)
			}
		}
		for i, s := range servers {
			if n := int(s.answered.Load()); n != want[i] || noted[i] != want[i]*600/630 {
				t.Errorf("server %d answered %d requests, want %d; %d of the replay are noted", i, n, want[i], noted[i])
			}
		}
	}
}

// The turns have every request once, in order, and each has a warm-up. With a balancer that counts, they are equal.
func TestTurnsHaveAllRequests(t *testing.T) {
	t.Parallel()
	here := replica.Replica{Rows: 1, Batcher: queuesim.Batcher{Instances: 1, MaxBatch: 1}, Curve: queuesim.ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}}}
	for _, how := range queuesim.Balancers() {
		f := fleet{options: Options{Engines: 3}, seed: 1}
		at := schedule{before: []time.Duration{0, time.Second}}
		for i := range 900 {
			at.counted = append(at.counted, time.Duration(i)*time.Millisecond)
		}
		var counted, before []time.Duration
		for i, turn := range f.turns(how, here, at) {
			if len(turn.before) == 0 || !slices.IsSorted(turn.counted) {
				t.Errorf("%s: turn %d has a warm-up of %d requests, and its instants do not ascend", how, i, len(turn.before))
			}
			if how != queuesim.Random && math.Abs(float64(len(turn.counted))-300) > 3 {
				t.Errorf("%s: turn %d has %d of 900 requests", how, i, len(turn.counted))
			}
			counted, before = append(counted, turn.counted...), append(before, turn.before...)
		}
		if slices.Sort(counted); !slices.Equal(counted, at.counted) || len(before) != 3 {
			t.Errorf("%s: the turns have %d of 900 requests, and warm-ups of %d", how, len(counted), len(before))
		}
	}
}

// Servers get their requests one after the other unless the machine has the cores of all. A GPU is never enough.
func TestWhoHasTheCores(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		engines, threads, cores int
		want                    bool
	}{{3, 1, 2, true}, {3, 1, 5, true}, {3, 1, 6, false}, {3, 0, 64, true}, {1, 1, 2, true}} {
		o := Options{Engines: x.engines, Threads: x.threads, Cores: x.cores}
		if got := o.isInTurn(replica.Replica{Cores: 2}); got != x.want {
			t.Errorf("%+v: in turn %t", x, got)
		}
	}
}

// On a machine as fast as the plan's, with cores for all, the servers answer as much as replicas do, and half if they
// take twice as long. In turn the number of cores does not count.
func TestCapacityOfTheMachine(t *testing.T) {
	t.Parallel()
	r := replica.Replica{
		Rows: 1, Batcher: queuesim.Batcher{Instances: 1, MaxBatch: 1}, Capacity: 100, Cores: 1,
		Curve: queuesim.ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}, Threads: 1},
	}
	slow := r
	slow.Curve.Alone, slow.Capacity = []float64{0.02}, 50
	piece := capacity.Piece{Moments: []capacity.Moment{{Requests: 1500, Ready: 2}}}
	for _, x := range []struct {
		cores  int
		here   replica.Replica
		want   float64
		inTurn bool
	}{{4, r, 1, false}, {2, r, 1, true}, {4, slow, 0.5, false}, {2, slow, 0.5, true}} {
		o := Options{Engines: 4, Threads: 1, Cores: x.cores}
		q := capacity.Question{Limit: 40 * time.Millisecond}
		v := plannedReplay(q, r, x.here, piece, o)
		if math.Abs(v.Capacity-x.want) > 0.01 || math.Abs(v.Limit-0.04/x.want) > 0.001 || v.PlannedRate != 50 || v.Replicas != 2 || v.InTurn != x.inTurn {
			t.Errorf("%d cores, %g s: %+v, want the capacity %g", x.cores, x.here.Curve.Alone[0], v, x.want)
		}
	}
}

// Clients that took 30 % of a core for 1,000 requests/s take 60 % for 2,000. What they take beyond is the sending's.
func TestSender(t *testing.T) {
	t.Parallel()
	window := func(cpu time.Duration, requests int) []measure.Window {
		return []measure.Window{{Duration: time.Second, ClientCPU: cpu, Requests: requests}}
	}
	f := fleet{speeds: []speed{{windows: window(time.Second, 10)}, {windows: window(300*time.Millisecond, 1000)}}}
	for cpu, want := range map[time.Duration]float64{750 * time.Millisecond: 0.15, 600 * time.Millisecond: 0, 500 * time.Millisecond: 0} {
		if got := f.sender(window(cpu, 2000)); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %g cores, want %g", cpu, got, want)
		}
	}
}

// single returns a replica with one instance, which takes 10 ms for each request.
func single() replica.Replica {
	return replica.Replica{
		Rows: 1, Batcher: queuesim.Batcher{Instances: 1, MaxBatch: 1}, Capacity: 100, Cores: 1,
		Curve:  queuesim.ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}, Threads: 1, Spread: 0.1},
		Checks: []replica.Check{{Load: measure.Load{Concurrency: 1, BatchSize: 1}}, {Load: measure.Load{Concurrency: 4, BatchSize: 1}}},
	}
}

// The simulation of the servers here says what they show: a server that takes half as long again as the plan's
// replica, at 60 % of its capacity, with an idle sender and with one that takes a quarter of its core.
func TestSimulatesTheServersHere(t *testing.T) {
	t.Parallel()
	planned := single()
	here := planned
	here.Curve.Alone = []float64{0.015}
	f := fleet{options: Options{Engines: 2, Threads: 1, Cores: 1}, planned: planned, seed: 1, inTurn: true, speeds: speedsOf(planned)}
	for i := range f.speeds {
		s := &f.speeds[i]
		s.windows = []measure.Window{closedWindow(0.015, 0.1, s.load.Concurrency)}
	}
	all := seen{windows: []measure.Window{{Duration: time.Second, Requests: 40, ClientCPU: 0}}}
	random := rand.New(rand.NewPCG(3, 3))
	for now := 0.0; len(all.sent) < 40_000; {
		now += random.ExpFloat64() / 80
		all.sent = append(all.sent, sent{time.Duration(now * 1e9), len(all.sent) % 2})
	}
	v := capacity.Verification{Limit: 1}
	f.simulate(all, &v)
	var fleet queuesim.Fleet
	r := queuesim.Instants{Rows: 1}
	for _, s := range all.sent {
		r.At, r.Servers = append(r.At, s.at), append(r.Servers, s.server)
	}
	want := fleet.Replay(2, queuesim.Random, here.Batcher, here.Curve, r, 0, queuesim.Options{Seed: 2})
	if math.Abs(v.Slowness-1.5) > 0.05 || math.Abs(v.Simulated.P99/want.P99-1) > 0.08 || v.Simulated.P99 != v.WithoutSender || v.Sender != 0 {
		t.Errorf("%+v, want p99 %g", v, want.P99)
	}
	all.windows[0].ClientCPU = 250 * time.Millisecond
	f.simulate(all, &v)
	r.Sender = 0.25
	want = fleet.Replay(2, queuesim.Random, here.Batcher, here.Curve, r, 0, queuesim.Options{Seed: 2})
	if math.Abs(v.Simulated.P99/want.P99-1) > 0.2 || !v.SenderCounts() || v.Sender != 0.25 {
		t.Errorf("with a sender: %+v, want p99 %g", v, want.P99)
	}
}

// Each server is simulated as fast as it was before and after its turn, whatever the others were.
func TestEachTurnHasItsSpeed(t *testing.T) {
	t.Parallel()
	planned := single()
	f := fleet{options: Options{Engines: 3, Threads: 1, Cores: 1}, planned: planned, seed: 1, inTurn: true, speeds: speedsOf(planned)}
	means := []float64{0.01, 0.01, 0.01, 0.03, 0.03, 0.03} // the machine is slower from the second turn on
	for i := range f.speeds {
		s := &f.speeds[i]
		for _, mean := range means {
			s.windows = append(s.windows, closedWindow(mean, 0.1, s.load.Concurrency))
		}
	}
	s := seen{turns: []turn{{2, 0}, {0, 2}, {1, 4}}}
	for i := range 2000 {
		s.sent = append(s.sent, sent{time.Duration(i) * time.Millisecond, i % 3})
	}
	here, _ := f.here()
	r, servers := f.requests(s, here.Curve)
	copies := servers / 3
	if servers%3 != 0 || len(r.At) != copies*len(s.sent) || len(r.At) < simulatedRequests || !slices.IsSorted(r.At) {
		t.Fatalf("%d servers have %d requests", servers, len(r.At))
	}
	for i, server := range r.Servers {
		want := s.sent[i/copies]
		// The speeds before and after a turn count alike: their loops have as many requests each.
		mean := map[int]float64{2: 0.01, 0: 0.02, 1: 0.03}[want.server]
		if r.At[i] != want.at || server%3 != want.server || math.Abs(r.Curves[server].Alone[0]/mean-1) > 0.1 {
			t.Fatalf("request %d comes at %v to server %d, which takes %g s; want %v, server %d and %g s", i, r.At[i], server%3, r.Curves[server].Alone[0], want.at, want.server, mean)
		}
	}
	f.inTurn = false
	if r, servers := f.requests(seen{sent: s.sent}, here.Curve); servers != 3 || len(r.At) != len(s.sent) || r.Curves != nil {
		t.Errorf("together: %d servers, %+v", servers, r)
	}
}

// closedWindow has the latencies that clients of a closed loop see of a server that answers one request at a time, in mean s with
// a spread. A request waits for all others, and so takes as many services as there are clients.
func closedWindow(mean, spread float64, clients int) measure.Window {
	const requests = 20_000
	random := rand.New(rand.NewPCG(9, uint64(clients)))
	services, latencies := make([]float64, requests), make([]time.Duration, requests)
	sum := 0.0
	for i := range requests {
		services[i] = mean * math.Exp(spread*random.NormFloat64()-spread*spread/2)
		if sum += services[i]; i >= clients {
			sum -= services[i-clients]
		}
		latencies[i] = time.Duration(sum * 1e9)
	}
	h := measure.NewHistogram(latencies)
	return measure.Window{Duration: time.Second, Requests: requests, Sub: []measure.SubWindow{{Requests: requests, Latency: h}}}
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
		r := replica.Replica{
			Rows: 1, Batcher: queuesim.Batcher{Instances: 1, MaxBatch: 1}, Capacity: 100, Cores: 1,
			Curve: queuesim.ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}, Threads: 1, Cores: 2},
		}
		f := fleet{options: Options{Engines: 2, Threads: 1, Cores: 2, Say: func(string) {}}, planned: r}
		for range 2 {
			f.connections = append(f.connections, slowServer{make(chan struct{}, 1)})
		}
		err := f.measureBusy(t.Context(), queuesim.LeastRequests)
		if got := together(r, f.options) / f.busy; err != nil || math.Abs(got-2) > 0.05 {
			t.Errorf("%g, %v; want 2", got, err)
		}
	})
}

// counted is a server's statistics of batches of two that take 20 ms.
type counted struct{ executions uint64 }

func (c *counted) Statistics(context.Context, string) (api.Statistics, error) {
	c.executions += 10
	spent := api.Duration{Count: 2 * c.executions, NS: 2 * c.executions * 20e6}
	batch := api.BatchStatistics{BatchSize: 2, ComputeInfer: api.Duration{Count: c.executions, NS: c.executions * 20e6}}
	return api.Statistics{ModelStats: []api.ModelStatistics{{
		Name: "m", Version: "1", InferenceCount: 2 * c.executions, ExecutionCount: c.executions, BatchStats: []api.BatchStatistics{batch},
		InferenceStats: api.InferenceStatistics{Success: spent, Queue: api.Duration{Count: 2 * c.executions}, ComputeInfer: spent},
	}}}, nil
}

// The statistics at the edges of windows show their batches. Without a server to ask, only processor time is read.
func TestEdgesShowBatches(t *testing.T) {
	t.Parallel()
	for _, control := range []meter.Control{nil, &counted{}} {
		e := edges{control: control, model: "m"}
		for i := range 4 {
			if err := e.read(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
		windows := e.fill(make([]measure.Window, 3))
		size, seconds := measure.Measurement{Windows: windows}.Batches()
		if isRead := control != nil; isRead != (size == 2 && math.Abs(seconds-0.02) < 1e-9) || isRead != (windows[2].Server.Executions == 10) {
			t.Errorf("statistics %t: batches of %g in %g s, %+v", isRead, size, seconds, windows[2].Server)
		}
	}
}
