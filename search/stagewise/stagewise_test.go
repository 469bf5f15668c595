package stagewise_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/joint"
	"tuner/search/plan"
	"tuner/search/queuesim"
)

// machine serves a tokenizer, an encoder and a head on two cores. Their times follow laws that the search
// does not know: threads help less than in proportion, batches help each stage in its own way, and each
// configuration of each stage has a factor of up to 6 % that nothing explains. Trials have 2 % of noise.
type machine struct {
	settings search.Settings
	seed     uint64
	laws     [3]law
}

// law is the time of a batch of n requests with t threads: (fixed + each·n)/speed(t).
type law struct{ fixed, each, second float64 }

const (
	cores    = 2
	overhead = 0.0004
)

var names = [3]string{"tokenizer", "encoder", "head"}

func newMachine(t *testing.T, seed uint64, constraints ...search.Constraint) machine {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	m := machine{seed: seed}
	heavy := random.IntN(3)
	for i := range m.laws {
		m.laws[i] = law{fixed: 0.0002 + 0.0008*random.Float64(), each: 0.0001 + 0.0004*random.Float64(), second: 0.2 + 0.7*random.Float64()}
		if i == heavy {
			m.laws[i].fixed, m.laws[i].each = 0.003+0.003*random.Float64(), 0.001+0.001*random.Float64()
		}
	}
	var parts []search.Part
	for i, name := range names {
		facts := search.Facts{Cores: cores, Batching: true, Precisions: []string{"fp32"}, BaseMaxBatchSize: 4, BaseInstances: 1}
		if i > 0 {
			facts.After = []string{names[i-1]}
		}
		parts = append(parts, search.Part{Model: name, Space: search.Space{Facts: facts, Load: search.LoadAxis{Levels: []float64{1}, BatchSize: 1}, Knobs: []search.Knob{
			{Name: search.KnobIntraOpThreads, Scope: search.ScopeEngine, Values: []search.Value{"1", "2"}},
			{Name: search.KnobInstanceCount, Scope: search.ScopePool, Values: []search.Value{"1", "2"}},
			{Name: search.KnobMaxBatchSize, Scope: search.ScopeBatcher, Values: []search.Value{"1", "16"}},
		}}})
	}
	var levels []float64
	for n := 1.0; n <= 128; n *= 2 {
		levels = append(levels, n)
	}
	m.settings = search.Settings{
		Space: joint.Pipeline(parts, search.LoadAxis{Levels: levels, Any: true, BatchSize: 1}, search.Facts{Cores: cores, Batching: true}), Window: time.Second, Seed: 1,
		Goal: search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}, Constraints: constraints},
	}
	return m
}

// A pipeline that does not batch gets service trials of its own requests alone, however its stages batch.
func TestServiceTrialsOfPipelineWithoutBatches(t *testing.T) {
	t.Parallel()
	for batching, want := range map[bool]string{true: "[1 2 4 8 16]", false: "[1]"} {
		m := newMachine(t, 1)
		m.settings.Space.Facts.Batching = batching
		p, err := plan.New(plan.Stagewise, m.settings)
		if err != nil {
			t.Fatal(err)
		}
		for action := p.Ask(); ; action = p.Ask() {
			if trial := action.Trials()[0]; trial.Phase == search.PhaseService {
				if got := fmt.Sprint(trial.Sizes); got != want {
					t.Errorf("batching %t: sizes %s, want %s", batching, got, want)
				}
				break
			}
			for _, trial := range action.Trials() {
				p.Tell(search.Event{Trial: trial, Measurement: m.measure(trial, 1), Elapsed: time.Second})
			}
		}
	}
}

// stages returns the laws of a candidate for a simulation.
func (m machine) stages(c search.Candidate) []queuesim.Stage {
	var list []queuesim.Stage
	for i, p := range m.settings.Space.Parts {
		own := c.Of(p.Model)
		serving := p.Space.Serving(own)
		threads := serving.Threads
		if threads == 0 {
			threads = cores
		}
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %d %s", m.seed, i, own.Key())
		factor := 1 + 0.06*(float64(h.Sum64()%1000)/500-1)
		curve := queuesim.ServiceCurve{Spread: 0.08, Threads: threads}
		for _, n := range []int{1, 2, 4, 8, 16} {
			curve.Sizes = append(curve.Sizes, n)
			curve.Alone = append(curve.Alone, factor*(m.laws[i].fixed+m.laws[i].each*float64(n))/(1+m.laws[i].second*float64(threads-1)))
		}
		s := queuesim.Stage{Curve: curve, Batcher: queuesim.Batcher{Instances: serving.Instances, MaxBatch: serving.MaxBatch, Dynamic: serving.Dynamic && serving.MaxBatch > 1}}
		if i > 0 {
			s.After = []int{i - 1}
		}
		list = append(list, s)
	}
	return list
}

func (m machine) truth(c search.Candidate, load measure.Load, requests int) queuesim.Result {
	r, _ := queuesim.Pipeline(m.stages(c), cores, load, overhead, queuesim.Options{Requests: requests, Seed: m.seed + 99, Within: m.settings.Goal.Within()})
	return r
}

// measure returns what a trial would give.
func (m machine) measure(t search.Trial, launch int) measure.Measurement {
	r := measure.Measurement{Launch: launch, Memory: 100e6, Times: measure.Times{WarmUp: time.Second / 2, Windows: time.Duration(t.Windows) * t.Window}}
	random := rand.New(rand.NewPCG(m.seed, uint64(launch)))
	stages := m.stages(t.Candidate)
	if t.Phase == search.PhaseService {
		for _, size := range t.Sizes {
			latency := overhead
			w := measure.Window{Duration: t.Window}
			for i, s := range stages {
				seconds := s.Curve.Time(size, 1, 1)
				latency += seconds
				w.Stages = append(w.Stages, statsOf(names[i], 50, size, seconds))
			}
			r.Windows = append(r.Windows, filled(w, 50, size, func(float64) float64 { return latency }))
		}
		return r
	}
	truth := m.truth(t.Candidate, t.Load, 1500)
	noise := math.Exp(0.02 * random.NormFloat64())
	for range t.Windows {
		w := measure.Window{Duration: t.Window}
		n := int(truth.Throughput * noise * t.Window.Seconds())
		for i, s := range stages {
			w.Stages = append(w.Stages, statsOf(names[i], n, 1, s.Curve.Time(1, 1, 1)))
		}
		w.InFlight = truth.Throughput * noise * truth.Mean / noise
		r.Windows = append(r.Windows, filled(w, n, 1, func(q float64) float64 { return truth.Quantile(q) / noise }))
	}
	return r
}

// statsOf are the statistics of a stage with n requests in batches of a size.
func statsOf(model string, n, size int, seconds float64) measure.StageStats {
	spent := time.Duration(float64(n) * seconds * float64(time.Second))
	return measure.StageStats{Model: model, Server: measure.ServerStats{Requests: n, Inferences: n * size, Executions: n, ComputeInfer: spent,
		Batches: []measure.BatchStat{{Size: size, Executions: n, ComputeInfer: spent}}}}
}

// filled returns a window with n requests, whose latencies are the quantiles of a distribution.
func filled(w measure.Window, n, size int, quantile func(float64) float64) measure.Window {
	const slices = 10
	w.Requests, w.Inferences = n, n*size
	for k := range slices {
		recorder, count, sum := measure.NewRecorder(), n/slices, time.Duration(0)
		if k == 0 {
			count += n % slices
		}
		for i := range count {
			latency := time.Duration(quantile((float64(i)+0.5)/float64(count)) * float64(time.Second))
			recorder.Record(latency)
			sum += latency
		}
		w.Sub = append(w.Sub, measure.SubWindow{Requests: count, Duration: w.Duration / slices, Latency: recorder.Histogram(), Sum: sum})
	}
	return w
}

// run plays a campaign to its end.
func (m machine) run(t *testing.T, budget search.Budget, replays bool) (*plan.Plan, []search.Event) {
	t.Helper()
	m.settings.Budget = budget
	p, err := plan.New(plan.Stagewise, m.settings)
	if err != nil {
		t.Fatal(err)
	}
	var events []search.Event
	elapsed := time.Duration(0)
	for len(events) < 300 {
		action := p.Ask()
		if replays {
			m.checkReplay(t, action, events)
		}
		if action.Stop {
			return p, events
		}
		for _, trial := range action.Trials() {
			r := m.measure(trial, len(events)+1)
			elapsed += r.Times.Total() + time.Second
			e := search.Event{Trial: trial, Measurement: r, Elapsed: elapsed}
			if err := e.Check(); err != nil {
				t.Fatal(err)
			}
			p.Tell(e)
			events = append(events, e)
		}
	}
	t.Fatal("the campaign does not end")
	return nil, nil
}

// checkReplay checks that a strategy that is told all events again asks for the same.
func (m machine) checkReplay(t *testing.T, action search.Action, events []search.Event) {
	t.Helper()
	again, err := plan.New(plan.Stagewise, m.settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		again.Tell(e)
	}
	if other := again.Ask(); other.Stop != action.Stop || other.Trial.Candidate.Key() != action.Trial.Candidate.Key() || other.Trial.Load != action.Trial.Load {
		t.Fatalf("after %d trials a resumed campaign asks for %s at %s, not for %s at %s", len(events),
			other.Trial.Candidate, other.Trial.Load, action.Trial.Candidate, action.Trial.Load)
	}
}

// best returns the highest figure of all candidates at powers of two of clients.
func (m machine) best(figure func(queuesim.Result) float64) float64 {
	most := 0.0
	for _, c := range m.settings.Space.Candidates().All() {
		for _, level := range m.settings.Space.Load.Levels {
			most = max(most, figure(m.truth(c, m.settings.Space.Load.At(level), 300)))
		}
	}
	return most
}

// cellsOf counts the configurations at a load that the search measured, apart from service trials.
func cellsOf(events []search.Event) int {
	seen := map[string]bool{}
	for _, e := range events {
		if e.Trial.Phase != search.PhaseService && e.Trial.Phase != search.PhaseLoadCurve {
			seen[e.Trial.Candidate.Key()+e.Trial.Load.String()] = true
		}
	}
	return len(seen)
}

// The answer is within 5 % of the best of 512 configurations at 8 loads each, after trials of at most a tenth
// of these points. The exhaustive grid counts 300 requests for each, so its maximum is too high by some percent:
// 8 % are allowed here.
func TestFindsTheBest(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{math.Inf(1), 0.040} {
		m := newMachine(t, 3)
		if !math.IsInf(limit, 1) {
			m = newMachine(t, 3, search.Constraint{Metric: measure.LatencyP99, Max: &limit})
		}
		p, events := m.run(t, search.Budget{Trials: 50}, false)
		answer := p.SoFar().Answer()
		if answer == nil {
			t.Errorf("limit %v: no answer after %d trials", limit, len(events))
			continue
		}
		got, best := m.truth(answer.Candidate, answer.Load, 4000), m.best(func(r queuesim.Result) float64 {
			if r.P99 > limit {
				return 0
			}
			return r.Throughput
		})
		n, _ := m.settings.Space.Candidates().Len()
		t.Logf("limit %v: %s at %s gives %.1f/s, p99 %.1f ms; the best is %.1f/s; %d cells of %d configurations, %d trials", limit, answer.Candidate, answer.Load,
			got.Throughput, 1000*got.P99, best, cellsOf(events), n, len(events))
		if got.Throughput < 0.92*best || got.P99 > 1.1*limit || cellsOf(events) > n*len(m.settings.Space.Load.Levels)/10 {
			t.Errorf("limit %v: %.1f/s of %.1f/s, p99 %v", limit, got.Throughput, best, got.P99)
		}
	}
}

// A goodput is simulated with the latencies, and found as a throughput is.
func TestFindsTheBestGoodput(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 3)
	m.settings.Goal.Objective.Terms[0].Metric = "goodput_30ms"
	p, events := m.run(t, search.Budget{Trials: 50}, false)
	answer := p.SoFar().Answer()
	if answer == nil {
		t.Fatalf("no answer after %d trials", len(events))
	}
	goodput := func(r queuesim.Result) float64 { return r.Throughput * r.Within[0] }
	got, best := goodput(m.truth(answer.Candidate, answer.Load, 4000)), m.best(goodput)
	t.Logf("%s at %s gives %.1f/s in time, the best is %.1f/s; %d cells, %d trials", answer.Candidate, answer.Load, got, best, cellsOf(events), len(events))
	if got < 0.92*best {
		t.Errorf("%.1f/s of %.1f/s in time", got, best)
	}
}

// Memory is not simulated. All have the same here, so with it in the objective the search makes about the same trials as
// for the throughput alone. It does not know that, so a better one may exist.
func TestMemoryInTheObjective(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 3)
	_, alone := m.run(t, search.Budget{}, false)
	m.settings.Goal.Objective.Terms = []search.Term{{Metric: measure.Throughput, Weight: 2}, {Metric: measure.Memory, Weight: 1}}
	p, events := m.run(t, search.Budget{}, false)
	if a, b := cellsOf(alone), cellsOf(events); b > a+a/4 || b < a/2 {
		t.Errorf("%d cells are measured, for the throughput alone %d", b, a)
	}
	if more := p.SoFar().More; !math.IsInf(more, 1) {
		t.Errorf("others are better by %v at most", more)
	}
}

// What no service time shows is not searched, and the search says so.
func TestNothingOfTheObjectiveIsPredicted(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 3)
	m.settings.Goal.Objective.Terms[0].Metric = measure.Memory
	p, _ := m.run(t, search.Budget{Trials: 30}, false)
	if notes := strings.Join(p.Notes(), " "); !strings.Contains(notes, "the service times of the stages show nothing of memory") {
		t.Errorf("it says %s", notes)
	}
	if more := p.SoFar().More; !math.IsInf(more, 1) {
		t.Errorf("others are better by %v at most", more)
	}
}

func TestResumesAnywhere(t *testing.T) {
	t.Parallel()
	newMachine(t, 5).run(t, search.Budget{Trials: 14}, true)
}

// One service trial gives the curves of all stages: as many are made as the stage with the most engines
// needs, which are two here.
func TestServiceTrialsAreShared(t *testing.T) {
	t.Parallel()
	_, events := newMachine(t, 1).run(t, search.Budget{Trials: 30}, false)
	n := 0
	for _, e := range events {
		if e.Trial.Phase == search.PhaseService {
			n++
		}
	}
	if n < 2 || n > 3 {
		t.Errorf("%d service trials, want 2 for engines of 1 and 2 threads (3 with the default's)", n)
	}
}
