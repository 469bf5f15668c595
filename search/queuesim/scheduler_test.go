package queuesim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/engine/scheduler"
)

// The engine's scheduler, with a fake clock, makes the same batches from random arrivals at the
// same instants. (Only the test imports it, since tuner's side is separate from the engine.)
func TestBatchesAreTheSchedulers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		b, arrivals := randomTrace(rand.New(rand.NewPCG(seed, 0)))
		var simulated []start
		for _, e := range play(b, ServiceCurve{Sizes: []int{1, 101}, Alone: []float64{duration(1).Seconds(), duration(101).Seconds()}}, arrivals...) {
			simulated = append(simulated, start{time.Duration(math.Round(e.begin * 1e9)), e.rows})
		}
		var real []start
		synctest.Test(t, func(t *testing.T) { real = scheduled(t, b, arrivals, nil) })
		for _, list := range [][]start{real, simulated} { // batches that begin together may have either order
			slices.SortFunc(list, func(x, y start) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.rows, y.rows)) })
		}
		same := func(x, y start) bool { return x.rows == y.rows && (x.at-y.at).Abs() < time.Microsecond }
		if d := gocmp.Diff(real, simulated, gocmp.Comparer(same)); d != "" {
			t.Fatalf("seed %d, %+v: executions of %v (-scheduler +simulated):\n%s", seed, b, arrivals, d)
		}
	}
}

// The same holds for requests of two or three shapes, which come in random order. A batch of a kind
// takes as long as one of the others.
func TestBatchesOfKindsAreTheSchedulers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		b, arrivals := randomTrace(random)
		kinds := make([]int, len(arrivals))
		for i := range kinds {
			kinds[i] = random.IntN(2 + int(seed%2))
		}
		curve := ServiceCurve{Sizes: []int{1, 101}, Alone: []float64{duration(1).Seconds(), duration(101).Seconds()}}
		curve.Kinds = slices.Repeat([]Kind{{Share: 1. / 3, Alone: curve.Alone}}, 3)
		var simulated []start
		for _, e := range playKinds(b, curve, kinds, arrivals...) {
			simulated = append(simulated, start{time.Duration(math.Round(e.begin * 1e9)), e.rows})
		}
		var real []start
		synctest.Test(t, func(t *testing.T) { real = scheduled(t, b, arrivals, kinds) })
		for _, list := range [][]start{real, simulated} {
			slices.SortFunc(list, func(x, y start) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.rows, y.rows)) })
		}
		same := func(x, y start) bool { return x.rows == y.rows && (x.at-y.at).Abs() < time.Microsecond }
		if d := gocmp.Diff(real, simulated, gocmp.Comparer(same)); d != "" {
			t.Fatalf("seed %d, %+v: executions of %v of kinds %v (-scheduler +simulated):\n%s", seed, b, arrivals, kinds, d)
		}
	}
}

// duration returns the time of a batch.
func duration(rows int) time.Duration {
	return 100*time.Millisecond + time.Duration(rows)*1_370*time.Microsecond
}

// randomTrace makes settings and arrivals that alternate between busy and idle instances.
func randomTrace(random *rand.Rand) (Batcher, []arrival) {
	b := Batcher{
		Instances: 1 + random.IntN(3), MaxBatch: 1 + random.IntN(12), Dynamic: random.IntN(10) > 0,
		Delay: []time.Duration{0, 20 * time.Millisecond, 70 * time.Millisecond, 250 * time.Millisecond}[random.IntN(4)],
	}
	for range random.IntN(4) {
		b.Preferred = append(b.Preferred, 1+random.IntN(b.MaxBatch))
	}
	slices.Sort(b.Preferred)
	b.Preferred = slices.Compact(b.Preferred)
	mean := 3 + 40*random.Float64() // ms
	var arrivals []arrival
	at := 0.0
	for range 60 {
		at += max(0.001, mean*random.ExpFloat64())
		instant := time.Duration(at*1e6) * time.Nanosecond
		arrivals = append(arrivals, arrival{instant.Seconds(), 1, 1 + random.IntN(min(b.MaxBatch, 3))})
	}
	return b, arrivals
}

// noted is an Executor that records the begin of a batch and takes its duration.
type noted struct {
	begin time.Time
	mu    *sync.Mutex
	ran   *[]start
}

type start struct {
	at   time.Duration // since the start of the trace
	rows int
}

func (n noted) Execute(items []scheduler.Item[int]) {
	rows := 0
	for _, it := range items {
		rows += it.Rows
	}
	n.mu.Lock()
	*n.ran = append(*n.ran, start{time.Since(n.begin), rows})
	n.mu.Unlock()
	time.Sleep(duration(rows))
}

// scheduled sends arrivals to the scheduler and lists the executions. kinds are those of the
// requests; nil for one shape.
func scheduled(t *testing.T, b Batcher, arrivals []arrival, kinds []int) (ran []start) {
	var mu sync.Mutex
	var executors []scheduler.Executor[int]
	begin := time.Now()
	for range b.Instances {
		executors = append(executors, noted{begin, &mu, &ran})
	}
	set := scheduler.Settings{Dynamic: b.Dynamic, MaxBatch: b.MaxBatch, Preferred: b.Preferred, Delay: b.Delay, Gather: true}
	s := scheduler.New(set, executors, scheduler.GoTimer)
	synctest.Wait()
	var tickets []*scheduler.Ticket[int]
	for i, a := range arrivals {
		item := scheduler.Item[int]{Rows: a.rows}
		if kinds != nil {
			item.Shape = fmt.Sprintf("shape %d", kinds[i])
		}
		time.Sleep(time.Until(begin.Add(time.Duration(math.Round(a.at * 1e9)))))
		ticket, err := s.Enqueue(item)
		if err != nil {
			t.Fatal(err)
		}
		tickets = append(tickets, ticket)
		synctest.Wait()
	}
	for _, ticket := range tickets {
		if err := ticket.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	return ran
}
