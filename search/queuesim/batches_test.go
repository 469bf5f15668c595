package queuesim

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/measure"
)

// constant returns a curve whose batches all take the same time, in seconds.
func constant(time float64) ServiceCurve {
	return ServiceCurve{Sizes: []int{1, 1000}, Alone: []float64{time, time}}
}

// affine returns the curve of batches that take a + b·n milliseconds.
func affine(a, b float64) ServiceCurve {
	return ServiceCurve{Sizes: []int{1, 1000}, Alone: []float64{(a + b) / 1000, (a + 1000*b) / 1000}}
}

// ended is an execution with its end.
type ended struct {
	execution
	at float64
}

// play simulates given arrivals and returns the executions in the order of their begin.
func play(b Batcher, c ServiceCurve, arrivals ...arrival) []ended {
	return playKinds(b, c, nil, arrivals...)
}

// playKinds is play for requests of given kinds, in the order of the arrivals.
func playKinds(b Batcher, c ServiceCurve, kinds []int, arrivals ...arrival) []ended {
	var s Simulator
	if kinds != nil {
		next := -1
		s.kinds = func() int { next++; return kinds[next] }
	}
	var all []ended
	s.observe = func(e execution, at float64) { all = append(all, ended{e, at}) }
	s.alone()
	s.reset(b, c, 0)
	s.tally.reset(0, math.MaxInt)
	for _, a := range arrivals {
		s.due.push(a)
	}
	s.run()
	slices.SortStableFunc(all, func(x, y ended) int { return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.first, y.first)) })
	return all
}

// A real Triton 2.51 formed these batches from these arrivals ("instant in ms:rows"). Executions of
// the model take 100 ms. The cases are those of engine/scheduler's test of the same name.
func TestBatchesAreTritons(t *testing.T) {
	t.Parallel()
	const delay = 50 * time.Millisecond
	for _, tc := range []struct {
		name     string
		batcher  Batcher
		arrivals string
		want     []int
	}{
		{"no delay", Batcher{Instances: 1, MaxBatch: 8},
			"0:2 32:1 52:1 64:1 76:2 116:1 176:2 236:2 248:1 260:1 272:2 284:1 344:1 384:1 396:2 456:1", []int{2, 5, 3, 7, 4, 1}},
		{"delay", Batcher{Instances: 1, MaxBatch: 8, Delay: delay},
			"0:1 20:1 40:1 80:1 120:1 180:2 192:2 204:1 216:2 276:1 288:2 300:1", []int{3, 2, 7, 4}},
		{"long delay", Batcher{Instances: 1, MaxBatch: 4, Delay: 3 * delay},
			"0:1 12:1 72:1 132:1 144:1 176:1 188:1 200:1 212:1 244:1 304:1 316:1 376:1 396:1 436:1 448:2", []int{4, 4, 4, 3, 2}},
		{"preferred sizes", Batcher{Instances: 1, MaxBatch: 8, Preferred: []int{8, 4}},
			"0:1 60:2 120:1 132:2 152:2 172:1 232:1 244:1 284:2 296:1 308:2 328:2 348:2 368:2 408:1 420:2", []int{1, 2, 6, 4, 7, 5}},
		{"preferred sizes, longer", Batcher{Instances: 1, MaxBatch: 8, Preferred: []int{4, 8}},
			"0:2 20:2 30:1 80:2 150:1 160:1 170:1 220:1 230:1 240:1 250:1 270:2 300:2 310:1 330:1 340:1 370:1 400:1 410:1 420:1 450:2 500:1 510:2 520:1",
			[]int{2, 5, 3, 4, 4, 4, 8, 1}},
		{"preferred sizes and delay", Batcher{Instances: 1, MaxBatch: 8, Preferred: []int{4, 8}, Delay: delay},
			"0:1 32:1 92:1 104:1 116:1 128:1 148:1 180:1 192:2 204:2 224:1 244:2 304:1 324:2 344:1 404:1", []int{2, 4, 7, 6, 1}},
		{"preferred sizes and delay, longer", Batcher{Instances: 1, MaxBatch: 8, Preferred: []int{4, 8}, Delay: delay},
			"0:1 10:1 20:2 50:1 60:2 70:1 80:1 130:2 140:1 150:2 170:1 180:1 210:1 240:1 250:1 270:2 280:1 300:1 370:1 380:1 450:1 470:1 490:1 540:1",
			[]int{4, 4, 8, 7, 2, 3, 1}},
		{"two instances", Batcher{Instances: 2, MaxBatch: 8},
			"0:2 12:1 24:1 44:1 56:1 116:2 128:1 140:1 152:1 172:2 184:2 196:2 208:2 248:2 268:1 280:2", []int{2, 1, 3, 2, 7, 4, 5}},
		{"two instances, delay", Batcher{Instances: 2, MaxBatch: 8, Delay: delay},
			"0:1 40:1 60:1 72:2 84:1 96:1 128:2 140:2 152:2 164:1 196:1 236:2 256:1 276:2 288:1 348:1", []int{2, 5, 7, 3, 4, 1}},
		{"two instances, preferred size and delay", Batcher{Instances: 2, MaxBatch: 8, Preferred: []int{4}, Delay: delay},
			"0:2 12:1 32:1 92:1 112:1 152:1 212:2 232:1 244:2 256:2 268:1 280:2 292:2 332:2 344:1 356:1", []int{4, 2, 1, 3, 5, 6, 2}},
		{"two instances, preferred size", Batcher{Instances: 2, MaxBatch: 6, Preferred: []int{3}},
			"0:2 12:1 24:1 36:1 56:1 76:2 88:1 100:1 112:1 124:2 144:1 184:1 196:1 208:1 248:1 288:1", []int{2, 1, 3, 3, 4, 3, 3}},
	} {
		var arrivals []arrival
		for _, word := range strings.Fields(tc.arrivals) {
			a := arrival{requests: 1}
			if _, err := fmt.Sscanf(word, "%f:%d", &a.at, &a.rows); err != nil {
				t.Fatal(err)
			}
			a.at /= 1000
			arrivals = append(arrivals, a)
		}
		tc.batcher.Dynamic = true
		var got []int
		// slightly more than 100 ms, like any real execution
		for _, e := range play(tc.batcher, constant(0.101), arrivals...) {
			got = append(got, e.rows)
		}
		if d := gocmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: rows of the executions (-Triton +simulated):\n%s", tc.name, d)
		}
	}
}

// The requests A, C, B, D, E, in the order of their arrival, have 4, 2, 2, 6, 2 rows. A and C
// arrive at 0, B at 1/3, D and E at 2/3 of an execution. A batch has at most 8 rows. Without delay
// the instances are busy until just after 0, since an idle one would start A alone.
func TestTiming(t *testing.T) {
	t.Parallel()
	const soon = 1e-6
	names := "ACBDE"
	for _, tc := range []struct {
		name    string
		batcher Batcher
		want    []string
	}{
		{"one instance, no batching", Batcher{Instances: 1},
			[]string{"A 0.00-1.00", "C 1.00-2.00", "B 2.00-3.00", "D 3.00-4.00", "E 4.00-5.00"}},
		{"one instance, no delay", Batcher{Instances: 1, Dynamic: true},
			[]string{"AC 0.00-1.00", "BD 1.00-2.00", "E 2.00-3.00"}},
		{"one instance, half a delay", Batcher{Instances: 1, Dynamic: true, Delay: time.Second / 2},
			[]string{"ACB 0.33-1.33", "DE 1.33-2.33"}},
		{"two instances, no batching", Batcher{Instances: 2},
			[]string{"A 0.00-1.00", "C 0.00-1.00", "B 1.00-2.00", "D 1.00-2.00", "E 2.00-3.00"}},
		{"two instances, no delay", Batcher{Instances: 2, Dynamic: true},
			[]string{"AC 0.00-1.00", "B 0.33-1.33", "DE 1.00-2.00"}},
		{"two instances, half a delay", Batcher{Instances: 2, Dynamic: true, Delay: time.Second / 2},
			[]string{"ACB 0.33-1.33", "DE 0.67-1.67"}},
	} {
		tc.batcher.MaxBatch = 8
		arrivals := []arrival{{0, 1, 4}, {0, 1, 2}, {1. / 3, 1, 2}, {2. / 3, 1, 6}, {2. / 3, 1, 2}}
		blockers := 0
		if tc.batcher.Dynamic && tc.batcher.Delay == 0 {
			blockers = tc.batcher.Instances
			arrivals = append([]arrival{{-1 + soon, blockers, 8}}, arrivals...)
		}
		var got []string
		for _, e := range play(tc.batcher, constant(1), arrivals...)[blockers:] {
			got = append(got, fmt.Sprintf("%s %.2f-%.2f", names[e.first-blockers:e.end-blockers], e.begin, e.at))
		}
		if d := gocmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: executions (-want +got):\n%s", tc.name, d)
		}
	}
}

// A batch takes 1 s alone and 2 s beside another. A begins at 0. B begins at 0.5, when half of A is
// done. The rest of A takes 1 s, in which half of B is done. The rest of B takes 0.5 s.
func TestRunningBatchesShare(t *testing.T) {
	t.Parallel()
	curve := ServiceCurve{Sizes: []int{1}, Alone: []float64{1}, Crowded: []float64{2}}
	got := play(Batcher{Instances: 2}, curve, arrival{0, 1, 1}, arrival{0.5, 1, 1})
	if len(got) != 2 || math.Abs(got[0].at-1.5) > 1e-9 || math.Abs(got[1].at-2) > 1e-9 {
		t.Errorf("executions end at %+v, want 1.5 and 2", got)
	}
}

// Deterministic closed loops with a closed form.
func TestClosedLoops(t *testing.T) {
	t.Parallel()
	overhead := func(c ServiceCurve, ms float64) ServiceCurve {
		c.Overhead = ms / 1000
		return c
	}
	clients := func(n int) measure.Load { return measure.Load{Concurrency: n, BatchSize: 1} }
	const ms = time.Millisecond
	for _, tc := range []struct {
		name              string
		batcher           Batcher
		curve             ServiceCurve
		load              measure.Load
		throughput, batch float64
		mean              float64 // ms
	}{
		// One client is in the server for 10 of 12 ms.
		{"one client", Batcher{Instances: 1, MaxBatch: 8, Dynamic: true}, overhead(constant(0.010), 2), clients(1), 1000. / 12, 1, 12},
		{"no batching, saturated", Batcher{Instances: 2, MaxBatch: 8}, constant(0.010), clients(3), 200, 1, 15},
		// All requests come at once, and one is served alone. Then the others are served, and so on
		// in turn: each waits for the other batch.
		{"two groups", Batcher{Instances: 1, MaxBatch: 8, Dynamic: true}, overhead(constant(0.010), 1), clients(8), 400, 4, 20},
		{"full batches", Batcher{Instances: 1, MaxBatch: 8, Dynamic: true}, overhead(affine(5, 1), 1), clients(64), 8000. / 13, 8, 8 * 13},
		// The queue never fills a batch. It waits 20 ms, executes for 5 + 4 ms, and the clients
		// take 1 ms.
		{"delay", Batcher{Instances: 1, MaxBatch: 8, Dynamic: true, Delay: 20 * ms}, overhead(affine(5, 1), 1), clients(4), 4000. / 30, 4, 30},
		// All eight are present at once, so no request waits for the delay.
		{"delay, but full", Batcher{Instances: 1, MaxBatch: 8, Dynamic: true, Delay: 20 * ms}, overhead(affine(5, 1), 1), clients(8), 8000. / 14, 8, 14},
		// Batches of 4 are closed, although 8 are possible. Four are served while four wait: 5 + 4
		// ms each.
		{"preferred size", Batcher{Instances: 1, MaxBatch: 8, Dynamic: true, Preferred: []int{4}}, overhead(affine(5, 1), 1), clients(8), 4000. / 9, 4, 18},
		// 3 + 3 fit into 8, 3 + 3 + 3 do not. Each pair of the 6 clients takes 5 + 6 ms.
		{"client batches are not split", Batcher{Instances: 1, MaxBatch: 8, Dynamic: true}, affine(5, 1), measure.Load{Concurrency: 6, BatchSize: 3}, 6000. / 11, 6, 33},
		// Of the eight clients, three are in each of two batches. When one ends, two requests wait. After
		// 0.2 ms its clients come back, and the first of them makes the next batch three. With the
		// other two it is as before: 3 inferences in 10.2 ms on each instance.
		{"clients that come back", Batcher{Instances: 2, MaxBatch: 16, Dynamic: true}, overhead(constant(0.010), 0.2), clients(8), 6000. / 10.2, 3,
			8 * 10.2 / 6},
		{"the smallest numbers", Batcher{}, constant(0.010), measure.Load{Concurrency: 1}, 100, 1, 10},
	} {
		got := Simulate(tc.batcher, tc.curve, tc.load, Options{})
		near := func(a, b float64) bool { return math.Abs(a/b-1) < 0.005 } // a window ends anywhere in a cycle
		if !near(got.Throughput, tc.throughput) || !near(got.MeanBatch, tc.batch) || !near(got.Mean, tc.mean/1000) {
			t.Errorf("%s: got %+v, want throughput %v, mean batch %v, mean latency %v ms", tc.name, got, tc.throughput, tc.batch, tc.mean)
		}
	}
}

func TestRefusedClientBatch(t *testing.T) {
	t.Parallel()
	got := Simulate(Batcher{MaxBatch: 4, Dynamic: true}, constant(1), measure.Load{Concurrency: 1, BatchSize: 5}, Options{})
	if !reflect.DeepEqual(got, Result{}) {
		t.Errorf("got %+v, want nothing: the server refuses it", got)
	}
}

// The result depends only on the arguments, and not on earlier simulations. A reused simulator
// allocates no memory.
func TestSimulatorIsUsedAgain(t *testing.T) {
	var s Simulator
	curve := ServiceCurve{Sizes: []int{1, 8}, Alone: []float64{0.002, 0.006}, Crowded: []float64{0.003, 0.01}, Spread: 0.1, Overhead: 1e-4}
	batching := Batcher{Instances: 2, MaxBatch: 8, Dynamic: true, Delay: time.Millisecond, Preferred: []int{4}}
	first := func(s *Simulator) Result {
		return s.Simulate(batching, curve, measure.Load{Concurrency: 20, BatchSize: 1}, Options{Seed: 1})
	}
	second := func(s *Simulator) Result {
		return s.Simulate(Batcher{Instances: 1, MaxBatch: 4}, curve, measure.Load{RequestRate: 100, BatchSize: 2}, Options{Seed: 2})
	}
	a, b := first(&s), second(&s)
	same := func(a, b Result) bool { return reflect.DeepEqual(a, b) }
	if !same(a, first(&s)) || !same(b, second(&s)) || !same(a, first(new(Simulator))) || !same(b, second(new(Simulator))) {
		t.Error("the results depend on what was simulated before")
	}
	if same(a, Simulate(batching, curve, measure.Load{Concurrency: 20, BatchSize: 1}, Options{Seed: 3})) {
		t.Error("another seed gives the same result")
	}
	if n := testing.AllocsPerRun(10, func() { first(&s); second(&s) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
