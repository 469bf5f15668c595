package queuesim

import (
	"cmp"
	"context"
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

// The engine's scheduler, with a fake clock, serves clients of closed loops that come back after random
// times. The same arrivals make the same batches here, at the same instants.
func TestGatheringIsTheSchedulers(t *testing.T) {
	t.Parallel()
	curve := ServiceCurve{Sizes: []int{1, 101}, Alone: []float64{duration(1).Seconds(), duration(101).Seconds()}}
	inVain := 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 2))
		b := Batcher{Instances: 1 + random.IntN(3), MaxBatch: 2 + random.IntN(12), Dynamic: true}
		if random.IntN(4) == 0 {
			b.Preferred = []int{1 + random.IntN(b.MaxBatch)}
		}
		var real []start
		var arrivals []arrival
		synctest.Test(t, func(t *testing.T) { real, arrivals = looped(t, b, random) })
		var simulated []start
		for _, e := range play(b, curve, arrivals...) {
			simulated = append(simulated, start{time.Duration(math.Round(e.begin * 1e9)), e.rows})
		}
		for _, list := range [][]start{real, simulated} {
			slices.SortFunc(list, func(x, y start) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.rows, y.rows)) })
		}
		same := func(x, y start) bool { return x.rows == y.rows && (x.at-y.at).Abs() < time.Microsecond }
		if d := gocmp.Diff(real, simulated, gocmp.Comparer(same)); d != "" {
			t.Fatalf("seed %d, %+v: executions of %v (-scheduler +simulated):\n%s", seed, b, arrivals, d)
		}
		inVain += waitsInVain(real, arrivals)
	}
	if inVain < 100 {
		t.Errorf("%d waits for clients ended in vain: the test shows nothing", inVain)
	}
}

// waitsInVain counts the executions that begin when nothing else happens: neither a request comes nor
// another execution ends.
func waitsInVain(executions []start, arrivals []arrival) int {
	happens := map[time.Duration]bool{}
	for _, a := range arrivals {
		happens[time.Duration(math.Round(a.at*1e9))] = true
	}
	for _, e := range executions {
		happens[e.at+duration(e.rows)] = true
	}
	n := 0
	for _, e := range executions {
		if !happens[e.at] {
			n++
		}
	}
	return n
}

// looped has clients send requests to the scheduler, one after the other, and lists the executions and
// the arrivals. Most clients come back within 5 ms, which is less than a 20th of a batch's duration.
func looped(t *testing.T, b Batcher, random *rand.Rand) (ran []start, arrivals []arrival) {
	const each = 30
	var mu sync.Mutex
	var executors []scheduler.Executor[int]
	begin := time.Now()
	for range b.Instances {
		executors = append(executors, noted{begin, &mu, &ran})
	}
	set := scheduler.Settings{Dynamic: true, MaxBatch: b.MaxBatch, Preferred: b.Preferred, Gather: true}
	s := scheduler.New(set, executors, scheduler.GoTimer)
	synctest.Wait()
	late := random.Float64() / 3 // the share of those who come back later
	var clients sync.WaitGroup
	for range 2 + random.IntN(20) {
		var pauses []time.Duration
		rows := 1 + random.IntN(min(b.MaxBatch, 2))
		for range each {
			pause := 5 * random.Float64()
			if random.Float64() < late {
				pause += 200 * random.Float64()
			}
			pauses = append(pauses, time.Duration(pause*1e6))
		}
		clients.Go(func() {
			for _, pause := range pauses {
				time.Sleep(pause)
				mu.Lock()
				arrivals = append(arrivals, arrival{time.Since(begin).Seconds(), 1, rows})
				mu.Unlock()
				ticket, err := s.Enqueue(scheduler.Item[int]{Rows: rows})
				if err != nil {
					t.Error(err)
					return
				}
				if err := ticket.Wait(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	s.Close()
	slices.SortFunc(arrivals, func(x, y arrival) int { return cmp.Compare(x.at, y.at) })
	return ran, arrivals
}
