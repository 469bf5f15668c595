package queuesim

import (
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/measure"
)

// onThreads returns a curve of constant times for instances that compute on some threads. Together they
// take as long as they would alone, as long as there are enough cores.
func onThreads(seconds float64, threads int) ServiceCurve {
	c := constant(seconds)
	c.Threads = threads
	return c
}

// open returns a model without batching under Poisson arrivals, in requests per second.
func open(instances int, c ServiceCurve, rate float64, seed uint64) Model {
	return Model{Batcher{Instances: instances}, c, measure.Load{RequestRate: rate}, Options{Requests: many, Seed: seed}}
}

// A model alone has the results of Simulate, to the last bit. So it has beside models without requests.
func TestOneModelTogether(t *testing.T) {
	t.Parallel()
	var s Simulator
	onTwoCores := func(c ServiceCurve) ServiceCurve {
		c.Path, c.Cores, c.Threads = c.Overhead/2, 2, 1
		return c
	}
	idle := Model{Batcher: Batcher{Instances: 3}, Curve: onThreads(1, 2)}
	loops(func(name string, b Batcher, c ServiceCurve, load measure.Load) {
		for _, curve := range []ServiceCurve{c, onTwoCores(c)} {
			for _, l := range []measure.Load{load, {RequestRate: 40 * load.Level(), BatchSize: 1}} {
				o := Options{Requests: 300, Seed: 7, Within: []float64{0.01}}
				want := Simulate(b, curve, l, o)
				m := Model{b, curve, l, o}
				if d := gocmp.Diff([]Result{want}, s.Together([]Model{m}, 2)); d != "" {
					t.Errorf("%s, %v (-alone +together):\n%s", name, l, d)
				}
				if d := gocmp.Diff([]Result{{}, want, {}}, s.Together([]Model{idle, m, idle}, 2)); d != "" {
					t.Errorf("%s, %v, beside idle models (-alone +together):\n%s", name, l, d)
				}
			}
		}
	})
}

// Models that never ask for more cores than there are do not notice each other. Two M/D/1 queues on
// two cores wait for ρ/(2(1−ρ)) services, as each alone.
func TestModelsWithEnoughCores(t *testing.T) {
	t.Parallel()
	r := Together([]Model{open(1, onThreads(1, 1), 0.5, 1), open(1, onThreads(0.5, 1), 1.5, 2)}, 2)
	check(t, "wait of the first", r[0].Queue, 0.5, 0.04)
	check(t, "wait of the second", r[1].Queue, 0.5*0.75/(2*0.25), 0.04)
	check(t, "throughput of the first", r[0].Throughput, 0.5, 0.01)
	check(t, "throughput of the second", r[1].Throughput, 1.5, 0.01)
}

// Instances that always compute share the cores by what they ask for. Each of them takes 1 s alone.
func TestBusyModelsShareCores(t *testing.T) {
	t.Parallel()
	closed := func(instances, threads int, seed uint64) Model {
		c := onThreads(1, threads)
		c.Spread = 0.01
		if own := float64(instances * threads); instances > 1 { // own instances share the two cores already
			c.Crowded = slices.Repeat([]float64{max(1, own/2)}, len(c.Alone))
		}
		return Model{Batcher{Instances: instances}, c, measure.Load{Concurrency: 4 * instances}, Options{Seed: seed}}
	}
	for _, tc := range []struct {
		name        string
		a, b        Model
		cores       int
		first, next float64 // requests/s
	}{
		{"each on half of a core", closed(1, 1, 1), closed(1, 1, 2), 1, 0.5, 0.5},
		{"four threads on three cores", closed(1, 2, 1), closed(1, 2, 2), 3, 0.75, 0.75},
		{"three threads on two cores", closed(1, 2, 1), closed(1, 1, 2), 2, 2. / 3, 2. / 3},
		{"instances of one model, and another model", closed(2, 1, 1), closed(1, 1, 2), 2, 2 * 2. / 3, 2. / 3},
		{"instances that are crowded already", closed(2, 2, 1), closed(1, 1, 2), 2, 2 * 2. / 5, 2. / 5},
		{"a GPU asks for no core", closed(1, 0, 1), closed(2, 1, 2), 2, 1, 2},
	} {
		r := Together([]Model{tc.a, tc.b}, tc.cores)
		check(t, tc.name+": first", r[0].Throughput, tc.first, 0.01)
		check(t, tc.name+": second", r[1].Throughput, tc.next, 0.01)
	}
}

// With an instance for every request, one core is a queue with processor sharing. A request's mean
// latency is then S/(1−ρ), whatever the distribution of S (Kleinrock, Queueing Systems 2, 1976,
// chapter 4). Two models, of 1 s at 0.3/s and of 3 s at 0.1/s, load the core by 0.6.
func TestProcessorSharing(t *testing.T) {
	t.Parallel()
	const instances = 60
	crowded := func(seconds float64) ServiceCurve { // on one core, n instances take n times as long
		c := onThreads(seconds, 1)
		c.Crowded = []float64{instances * seconds, instances * seconds}
		return c
	}
	r := Together([]Model{open(instances, crowded(1), 0.3, 1), open(instances, crowded(3), 0.1, 2)}, 1)
	check(t, "latency of the short", r[0].Mean, 1/0.4, 0.04)
	check(t, "latency of the long", r[1].Mean, 3/0.4, 0.04)
	check(t, "Little's law", r[0].Mean*r[0].Throughput, r[0].Busy, 0.02)
}

// pair returns a model with batches in an open loop and one in a closed loop, which compete for two cores.
func pair(scale float64) []Model {
	encoder := ServiceCurve{Sizes: []int{1, 8}, Alone: []float64{0.004, 0.020}, Crowded: []float64{0.005, 0.025}, Spread: 0.1,
		Overhead: 2e-4, Path: 1e-4, Threads: 1}
	ranker := ServiceCurve{Sizes: []int{1, 8}, Alone: []float64{0.001, 0.003}, Spread: 0.1, Threads: 1}
	return []Model{
		{Batcher{Instances: 2, MaxBatch: 8, Dynamic: true}, encoder, measure.Load{RequestRate: 150 * scale}, Options{Requests: 4000, Seed: 1}},
		{Batcher{Instances: 1, MaxBatch: 4, Dynamic: true}, ranker, measure.Load{RequestRate: 300 * scale}, Options{Requests: 4000, Seed: 2}},
	}
}

// Latencies grow with the load of all, beyond the simulation's noise. A shared seed makes the same
// requests come sooner.
func TestLatencyGrowsWithTheLoadOfAll(t *testing.T) {
	t.Parallel()
	var s Simulator
	last := make([]Result, 2)
	for scale := 0.25; scale < 2.6; scale *= 1.15 {
		r := s.Together(pair(scale), 2)
		for i := range r {
			if r[i].P99 < 0.97*last[i].P99 || r[i].Mean < 0.99*last[i].Mean {
				t.Errorf("model %d at %.2f: mean %v and p99 %v, before %v and %v", i, scale, r[i].Mean, r[i].P99, last[i].Mean, last[i].P99)
			}
			check(t, fmt.Sprintf("model %d at %.2f: throughput", i, scale), r[i].Throughput, pair(scale)[i].Load.RequestRate, 0.08)
		}
		last = r
	}
}

// The order of the models, and earlier simulations in the same memory, change no result.
func TestOrderOfModels(t *testing.T) {
	t.Parallel()
	var s Simulator
	models := append(pair(1), open(2, onThreads(0.01, 1), 20, 3))
	models[2].Options.Requests = 500
	r := s.Together(models, 2)
	slices.Reverse(models)
	again := s.Together(models, 2)
	slices.Reverse(again)
	if d := gocmp.Diff(r, again); d != "" {
		t.Errorf("in the other order (-before +now):\n%s", d)
	}
}

// A model with few requests ends the simulation after a bounded number of the others', and counts
// what it had. So does one whose load is beyond the capacity.
func TestRareModels(t *testing.T) {
	t.Parallel()
	models := []Model{open(1, onThreads(1e-3, 1), 500, 1), open(1, onThreads(1e-3, 1), 1, 2)}
	models[0].Options.Requests, models[1].Options.Requests = 1000, 1000
	var s Simulator
	r := s.Together(models, 2)
	check(t, "throughput of the frequent", r[0].Throughput, 500, 0.03)
	check(t, "latency of the rare", r[1].Mean, 1e-3, 0.01)
	if want := mostTogether * 2 * 1250; s.sent != want {
		t.Errorf("%d requests were sent, want %d", s.sent, want)
	}
	models[1] = open(1, onThreads(1, 1), 1e6, 2)
	if r := s.Together(models, 2); r[1].Throughput > 1.01 {
		t.Errorf("beyond its capacity of 1/s a model has %v/s", r[1].Throughput)
	}
}

// A load that the server refuses changes nothing for the others.
func TestRefusedModel(t *testing.T) {
	t.Parallel()
	refused := Model{Batcher{MaxBatch: 2}, onThreads(1, 1), measure.Load{RequestRate: 1, BatchSize: 3}, Options{}}
	r := Together(append(pair(1), refused), 2)
	if d := gocmp.Diff(append(Together(pair(1), 2), Result{}), r); d != "" {
		t.Errorf("with a refused model (-without +with):\n%s", d)
	}
	r = Together(append(pair(1)[:1], refused), 2)
	if d := gocmp.Diff(append(Together(pair(1)[:1], 2), Result{}), r); d != "" {
		t.Errorf("of two models, one is refused (-without +with):\n%s", d)
	}
	if r = Together([]Model{refused, refused}, 2); r[0].Throughput+r[1].Throughput != 0 {
		t.Errorf("all are refused: %+v", r)
	}
}

// Only the results are allocated.
func TestTogetherReusesMemory(t *testing.T) {
	var s Simulator
	models := pair(1)
	s.Together(models, 2)
	if n := testing.AllocsPerRun(10, func() { s.Together(models, 2) }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}
