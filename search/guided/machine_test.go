package guided

import (
	"cmp"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/pools"
	"tuner/search/queuesim"
	"tuner/search/standings"
	"tuner/search/tour"
)

// machine is a server whose truth is the queue simulation of its own service times. It is
// multiplied by an error of each pool and of each candidate, and by noise.
type machine struct {
	settings  search.Settings
	seed      uint64
	poolError float64 // standard deviations of the logarithm
	cellError float64
	noise     float64 // of a second's throughput; twice as much for its 99th percentile
	tail      float64 // logarithm of the simulation's error in every latency percentile
	chaos     float64 // standard deviation of the logarithm of each cell's random error against any prediction
	visit     uint64  // selects another course of the noise
	slower    float64 // logarithm of the slowdown since the earlier campaign
	power     float64 // exponent with which threads shorten a batch; 0: 0.8
	most      int     // larger batches hang; 0: none do
	path      float64 // s of processor time that a request takes outside the instances
	quick     float64 // divisor of the batch times; 0: 1
	// fail makes trials fail unless it is nil.
	fail func(search.Trial) *measure.Failure

	simulated *sync.Map // by candidate and load: the part of the truth that no seed changes
}

// deviate returns a standard normal number that depends on a name.
func (m machine) deviate(name string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(m.seed, h.Sum64())).NormFloat64()
}

// threadsOf returns the number of threads of a candidate's instances, or base if it is unset.
func threadsOf(g *Guided, c search.Candidate, base int) int {
	n, err := g.settings.Space.Value(c, search.KnobIntraOpThreads).Int()
	if err != nil {
		return base
	}
	return n
}

// time returns the seconds of a batch with the given number of busy instances: threads share the
// cores.
func (m machine) time(g *Guided, c search.Candidate, batch, busy int) float64 {
	threads := threadsOf(g, c, 1)
	t := (0.004 + 0.002*float64(batch)) / math.Pow(float64(threads), cmp.Or(m.power, 0.8)) / cmp.Or(m.quick, 1)
	if v, _ := c.Get(search.KnobPrecision); v == "int8" {
		t *= 0.6
	}
	for _, s := range c.Settings() { // of the large spaces
		if n, err := s.Value.Int(); err == nil && strings.HasPrefix(s.Knob, "session.") {
			t *= math.Pow(0.98, float64(n))
		}
	}
	return t * max(1, float64(busy*threads)/float64(g.settings.Space.Facts.Cores))
}

func (m machine) curve(g *Guided, c search.Candidate) queuesim.ServiceCurve {
	curve := queuesim.ServiceCurve{Spread: 0.05, Overhead: 0.0003, Path: m.path, Cores: g.settings.Space.Facts.Cores, Threads: threadsOf(g, c, 1)}
	instances := g.pools.Queue(c).Instances
	for size := 1; size <= 32; size *= 2 {
		curve.Sizes = append(curve.Sizes, size)
		curve.Alone = append(curve.Alone, m.time(g, c, size, 1))
		if instances > 1 {
			curve.Crowded = append(curve.Crowded, m.time(g, c, size, instances))
		}
	}
	return curve
}

// truth returns throughput, mean latency and 99th percentile of a candidate at a load, without
// noise.
func (m machine) truth(g *Guided, c search.Candidate, load measure.Load) (x, mean, p99 float64) {
	key, r := c.Key()+load.String(), m.simulate(g, c, load)
	off := m.poolError*m.deviate("pool"+pools.EngineKey(c)+string(g.settings.Space.Value(c, search.KnobInstanceCount))) + m.cellError*m.deviate(c.Key())
	off += m.chaos*m.deviate("chaos"+key) - m.slower
	tail := m.tail + m.poolError*m.deviate("tail"+c.PoolKey()) + m.cellError*m.deviate("tail"+c.Key())
	x = r.Throughput * math.Exp(off)
	if load.RequestRate > 0 {
		x = r.Throughput // a server that keeps up with an open loop answers the offered rate
	}
	return x, r.Mean * math.Exp(-off), max(r.P99, r.Mean) * math.Exp(tail-off)
}

func (m machine) simulate(g *Guided, c search.Candidate, load measure.Load) queuesim.Result {
	key := c.Key() + load.String()
	known, ok := m.simulated.Load(key)
	if !ok {
		known = queuesim.Simulate(g.pools.Queue(c), m.curve(g, c), load, queuesim.Options{Seed: 99})
		m.simulated.Store(key, known)
	}
	return known.(queuesim.Result)
}

// run answers trials: the default's best load first, then those of the strategy, until it stops or
// enough is measured.
func (m machine) run(t *testing.T, most int) (*Guided, []search.Event) {
	t.Helper()
	ledger := standings.NewLedger(m.settings.Goal)
	g := New(m.settings, ledger, m.settings.Space.Candidates())
	tour := tour.New(m.settings, ledger, search.PhaseDefault, []search.Candidate{{}})
	var events []search.Event
	last, elapsed := "", time.Duration(0)
	for len(events) < most {
		next := tour.Ask()
		if next.Stop {
			next = g.Ask()
		}
		if next.Stop {
			break
		}
		e := m.answer(g, next.Trial, len(events))
		if pool := next.Trial.Candidate.PoolKey(); pool != last {
			last, e.Measurement.Times.Launch = pool, 2*time.Second
		}
		elapsed += e.Measurement.Times.Total()
		e.Elapsed = elapsed
		events = append(events, e)
		if e.Trial.Phase != search.PhaseService {
			ledger.Add(e)
		}
		tour.Tell(e)
		g.Tell(e)
	}
	return g, events
}

func (m machine) answer(g *Guided, trial search.Trial, ordinal int) search.Event {
	e := search.Event{Trial: trial}
	if m.fail != nil {
		if e.Measurement.Failure = m.fail(trial); e.Measurement.Failure != nil {
			return e
		}
	}
	hang := &measure.Failure{Stage: measure.StageHang, Reason: "no answer"}
	if batch := g.pools.Queue(trial.Candidate).MaxBatch; m.most > 0 && batch > m.most && trial.Phase != search.PhaseService && trial.Load.Concurrency > m.most {
		e.Measurement.Failure = hang
		return e
	}
	e.Measurement.Launch, e.Measurement.Memory = 1, int64(1e8*(1+g.pools.Queue(trial.Candidate).Instances))
	e.Measurement.Times = measure.Times{WarmUp: 300 * time.Millisecond, Windows: time.Duration(trial.Windows) * trial.Window}
	random := rand.New(rand.NewPCG(m.seed, uint64(ordinal)+m.visit<<32))
	if trial.Phase == search.PhaseService {
		var times []time.Duration
		for _, size := range trial.Sizes {
			if m.most > 0 && size > m.most {
				e.Measurement.Failure = hang
				return e
			}
			s := m.time(g, trial.Candidate, size, trial.Load.Concurrency) * math.Exp(m.slower+m.noise*random.NormFloat64())
			e.Measurement.Windows = append(e.Measurement.Windows, serviceWindowOf(size, s))
			if times = append(times, time.Duration(s*float64(time.Second))); trial.EndsAfter(times) {
				break
			}
		}
		return e
	}
	x, mean, p99 := m.truth(g, trial.Candidate, trial.Load)
	// a quarter of the variance is drift, which a longer window does not remove
	noise := m.noise * math.Sqrt(0.75/trial.Window.Seconds()+0.25)
	factor := math.Exp(noise * random.NormFloat64())
	w := windowOf(trial.Window, x*factor, mean/factor, p99/factor*math.Exp(2*noise*random.NormFloat64()))
	if m.path > 0 {
		m.addUse(g, &w, trial)
	}
	e.Measurement.Windows = []measure.Window{w}
	return e
}

// addUse adds the server's figures about its instances, and the system's about the processors.
func (m machine) addUse(g *Guided, w *measure.Window, trial search.Trial) {
	r := m.simulate(g, trial.Candidate, trial.Load)
	busy := r.Busy * w.Duration.Seconds()
	w.Server = measure.ServerStats{Requests: w.Requests, Inferences: w.Requests, Executions: max(int(float64(w.Requests)/r.MeanBatch), 1)}
	w.Server.ComputeInfer = time.Duration(busy * float64(w.Requests) / float64(w.Server.Executions) * 1e9)
	passing := float64(w.Requests) * m.path
	threads := threadsOf(g, trial.Candidate, g.settings.Space.Facts.Cores)
	w.EngineCPU = time.Duration((0.7*passing + busy*float64(threads)) * 1e9)
	w.ClientCPU = time.Duration(0.3 * passing * 1e9)
}

func serviceWindowOf(size int, seconds float64) measure.Window {
	const requests = 50
	spent := time.Duration(seconds * requests * 1e9)
	return measure.Window{
		Duration: 200 * time.Millisecond, Requests: requests, Inferences: requests * size,
		Sub:    []measure.SubWindow{{Requests: requests, Latency: histogram(requests, seconds+0.0003, seconds+0.0003)}},
		Server: measure.ServerStats{Requests: requests, Inferences: requests * size, Executions: requests, ComputeInfer: spent},
	}
}

// windowOf returns a window with a throughput in inferences/s, and latencies with a mean and a 99th
// percentile.
func windowOf(length time.Duration, x, mean, p99 float64) measure.Window {
	done := int(math.Round(x * length.Seconds()))
	return measure.Window{
		Duration: length, Requests: done, Inferences: done, Sub: []measure.SubWindow{{Requests: done, Latency: histogram(max(done, 1), mean, p99)}},
		CPUEnergy: 100 * length.Seconds(),
	}
}

// histogram returns n latencies of a Pareto distribution. The quantile u is least·(1−u)^−h. h and
// least give the 99th percentile and the mean, least/(1−h).
func histogram(n int, mean, p99 float64) measure.Histogram {
	low, high := 0.0, 0.75
	for range 40 {
		h := (low + high) / 2
		if (1-h)*math.Pow(100, h) < p99/mean {
			low = h
		} else {
			high = h
		}
	}
	quantile := func(i int) float64 {
		return mean * (1 - low) * math.Pow(1-(float64(i)+0.5)/float64(n), -low) * 1e9
	}
	// Powers are slow, so that up to 16 latencies that differ by less than an eighth lie on one line.
	latencies := make([]time.Duration, 0, n)
	for len(latencies) < n {
		i := len(latencies)
		span := max(1, min(16, (n-i)/9))
		first := quantile(i)
		slope := (quantile(i+span-1) - first) / float64(max(1, span-1))
		for k := range span {
			latencies = append(latencies, time.Duration(first+slope*float64(k)))
		}
	}
	return measure.NewHistogram(latencies)
}

// small returns a space of 2 × 3 × 4 × 6 × 2 settings with any concurrency from 1 to 64, for the
// highest throughput at a limited p99.
func small(p99 float64) search.Settings {
	knob := func(name string, values ...search.Value) search.Knob {
		scope, _ := search.KnobScope(name)
		return search.Knob{Name: name, Scope: scope, Values: values}
	}
	return search.Settings{
		Space: search.Space{
			Knobs: []search.Knob{
				knob(search.KnobPrecision, "fp32", "int8"),
				knob(search.KnobIntraOpThreads, "1", "2", "4"),
				knob(search.KnobInstanceCount, "1", "2", "3", "4"),
				knob(search.KnobMaxBatchSize, "1", "2", "4", "8", "16", "32"),
				knob(search.KnobMaxQueueDelay, "0us", "1000us"),
			},
			Load: search.LoadAxis{Levels: []float64{1, 2, 4, 8, 16, 32, 64}, Any: true, BatchSize: 1},
			Facts: search.Facts{
				Cores: 4, Batching: true, BaseMaxBatchSize: 4, BaseInstances: 2, Precisions: []string{"fp32", "int8"},
				Base: map[string]search.Value{
					search.KnobExecutionProvider: "cpu", search.KnobPrecision: "fp32", search.KnobIntraOpThreads: "4",
					search.KnobInstanceCount: "2", search.KnobMaxBatchSize: "4", search.KnobMaxQueueDelay: "0us",
				},
			},
		},
		Goal: search.Goal{
			Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
			Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &p99}},
		},
		Seed: 1, Window: time.Second,
	}
}

// best returns the highest true throughput within the limit on p99, over the grid's loads, batches
// from 8 on, and int8. int8 takes 0.6 of the time; other settings are never better here.
func (m machine) best(t *testing.T, limit float64) float64 {
	t.Helper()
	candidates := m.settings.Space.Candidates()
	g := New(m.settings, standings.NewLedger(m.settings.Goal), candidates)
	most := 0.0
	for _, c := range candidates.All() {
		if v, _ := c.Get(search.KnobPrecision); v != "int8" || g.pools.Queue(c).MaxBatch < 8 {
			continue
		}
		for _, level := range g.surveyor.levels[7:] {
			if x, _, p99 := m.truth(g, c, m.settings.Space.Load.At(level)); p99 <= limit {
				most = max(most, x)
			}
		}
	}
	return most
}
