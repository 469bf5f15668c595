package searchtest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/joint"
)

// Company runs campaigns of several models on a Colocated server.
type Company struct {
	Colocated
	// Precise are the models that may also be served as int8, which takes 0.6 of the time.
	Precise []bool
	Batches []int // values of max_batch_size
	// Divides offers cores of their own to the models, beside shared ones. DividesOnly offers no shared ones.
	Divides, DividesOnly        bool
	PerOctave                   int // levels in a doubling of the scale; 0: 16
	Launch, Reconfigure, WarmUp time.Duration
	// CurveNoise is the standard deviation of the logarithm of a batch's time in service trials.
	CurveNoise float64
	// Fail makes trials fail; nil: none fails.
	Fail func(search.Trial) *measure.Failure
}

// NewCompany returns a server with four cores and some models, whose laws vary by the seed: an
// encoder that takes milliseconds, a ranker that takes a tenth of it at ten times the rate, and so on in
// turn. The more models, the less traffic each has.
func NewCompany(models int, seed uint64) Company {
	r := rand.New(rand.NewPCG(seed, 98))
	between := func(a, b float64) float64 { return a + (b-a)*r.Float64() }
	c := Company{
		Colocated: Colocated{Cores: 4, Interference: between(0, 0.2), Noise: 0.03, Unknown: 0.03, Seed: seed},
		Batches:   []int{1, 4, 8}, Launch: 2 * time.Second, Reconfigure: 200 * time.Millisecond, WarmUp: 500 * time.Millisecond, CurveNoise: 0.015,
	}
	share := 2 / float64(models)
	for i := range models {
		l := Law{Fixed: between(2e-4, 8e-4), PerItem: between(1e-4, 5e-4), Rate: share * between(400, 1200), P99: between(0.003, 0.012)}
		if i%2 == 0 {
			l = Law{Fixed: between(2e-3, 6e-3), PerItem: between(2e-3, 6e-3), Rate: share * between(60, 180), P99: between(0.03, 0.08)}
		}
		c.Laws, c.Precise = append(c.Laws, l), append(c.Precise, i == 0)
	}
	return c
}

// ModelName returns the name of a model of a Company.
func ModelName(i int) string { return fmt.Sprintf("model%d", i+1) }

// perOctave is the usual number of levels in a doubling of the scale. Profiles have more (spec/scale), with which
// tests would take longer.
const perOctave = 16

// Settings returns the settings of a campaign: the largest scale within the limits of all models, of
// scales from 1/16 to 16.
func (c Company) Settings(b search.Budget) (search.Settings, error) {
	var parts []search.Part
	var limits []search.Constraint
	for i, l := range c.Laws {
		parts = append(parts, search.Part{Model: ModelName(i), Space: c.space(i)})
		limits = append(limits, AtMost(measure.LatencyP99.Of(ModelName(i)), l.P99))
	}
	var server []search.Knob
	if c.Divides || c.DividesOnly {
		values := joint.Divisions(len(c.Laws), c.Cores)
		if !c.DividesOnly {
			values = append([]search.Value{search.IsolationShared}, values...)
		}
		server = []search.Knob{{Name: search.KnobIsolation, Scope: search.ScopePool, Values: values}}
	}
	var scales []float64
	step := math.Exp2(1 / float64(cmp.Or(c.PerOctave, perOctave)))
	for level := 1.0 / 16; level <= 16; level *= step {
		scales = append(scales, level)
	}
	space, err := joint.Space(parts, server, scales, search.Facts{Cores: c.Cores, Nodes: c.Nodes})
	return search.Settings{
		Space: space, Goal: search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Scale, Weight: 1}}}, Constraints: limits},
		Budget: b, Seed: 1 + c.Seed, Window: time.Second,
	}, err
}

// space returns the space of a model: its precisions, threads, instances and batches.
func (c Company) space(model int) search.Space {
	knob := func(name string, values ...int) search.Knob {
		scope, _ := search.KnobScope(name)
		k := search.Knob{Name: name, Scope: scope}
		for _, v := range values {
			k.Values = append(k.Values, search.IntValue(v))
		}
		return k
	}
	s := search.Space{
		Knobs: []search.Knob{knob(search.KnobIntraOpThreads, 1, 2, 4), knob(search.KnobInstanceCount, 1, 2, 3, 4), knob(search.KnobMaxBatchSize, c.Batches...)},
		Load:  search.LoadAxis{Rate: true, Levels: []float64{c.Laws[model].Rate}, BatchSize: 1},
		Facts: search.Facts{
			Cores: c.Cores, Batching: true, TritonOnly: true, Precisions: []string{"fp32"},
			Base: map[string]search.Value{
				search.KnobPrecision: "fp32", search.KnobIntraOpThreads: search.IntValue(c.Cores),
				search.KnobInstanceCount: search.IntValue(2), search.KnobMaxBatchSize: search.IntValue(4),
			},
		},
	}
	if c.Precise[model] {
		s.Facts.Precisions = append(s.Facts.Precisions, "int8")
		s.Knobs = append([]search.Knob{{Name: search.KnobPrecision, Scope: search.ScopeArtifact, Values: []search.Value{"fp32", "int8"}}}, s.Knobs...)
	}
	return s
}

// setting returns a model's setting in a candidate. Triton's auto-completion makes the default: two
// instances on all cores, with batches of 4.
func (c Company) setting(of search.Candidate, model int) Setting {
	own := of.Of(ModelName(model))
	x := Setting{
		Work: 1, Threads: setting(own, search.KnobIntraOpThreads, c.Cores), Instances: setting(own, search.KnobInstanceCount, 2),
		MaxBatch: setting(own, search.KnobMaxBatchSize, 4),
	}
	if v, _ := own.Get(search.KnobPrecision); v == "int8" {
		x.Work = 0.6
	}
	return x
}

// Cell returns the settings of a candidate, and the cores of each model; nil: shared.
func (c Company) Cell(of search.Candidate) (settings []Setting, cores []int) {
	for i := range c.Laws {
		settings = append(settings, c.setting(of, i))
	}
	if v, has := of.Get(search.KnobIsolation); has {
		cores, _ = v.Divided()
	}
	return settings, cores
}

// Run runs a campaign to its end, or for limit trials, and returns its events.
func (c Company) Run(s search.Strategy, limit int) []search.Event {
	var run companySession
	for len(run.events) < limit {
		next := s.Ask()
		if next.Stop {
			break
		}
		for _, t := range next.Trials() {
			e := run.trial(c, t)
			run.events = append(run.events, e)
			s.Tell(e)
		}
	}
	return run.events
}

// companySession is the state of a campaign: its clock, and the running engine process.
type companySession struct {
	events   []search.Event
	elapsed  time.Duration
	launches int
	last     search.Candidate
}

func (s *companySession) trial(c Company, t search.Trial) search.Event {
	m := measure.Measurement{Memory: memory, Times: measure.Times{WarmUp: c.WarmUp, Windows: time.Duration(t.Windows) * t.Window}}
	switch {
	case s.launches == 0 || t.Fresh || t.Candidate.PoolKey() != s.last.PoolKey():
		s.launches++
		m.Times.Launch = c.Launch
	case t.Candidate.Key() != s.last.Key():
		m.Times.Reconfigure = c.Reconfigure
	}
	m.Launch, s.last = s.launches, t.Candidate
	if c.Fail != nil {
		m.Failure = c.Fail(t)
	}
	switch {
	case m.Failure != nil:
		m.Times.WarmUp, m.Times.Windows = 0, 0
	case t.Phase == search.PhaseService:
		m.Windows = c.curve(t, len(s.events))
		m.Times.WarmUp = m.Times.Windows // as long before each window as in it
	default:
		m.Scale, m.Windows = t.Load.Scale, c.windows(t, len(s.events))
	}
	s.elapsed += m.Times.Total()
	return search.Event{Trial: t, Measurement: m, Elapsed: s.elapsed}
}

// windows returns the windows of a trial of all models. All latencies of a model are its p99.
func (c Company) windows(t search.Trial, trial int) []measure.Window {
	if c.Queue {
		return c.queueWindows(t, trial)
	}
	settings, cores := c.Cell(t.Candidate)
	var list []measure.Window
	latencies := make([]measure.Histogram, len(c.Laws))
	for i, p99 := range c.Measure(trial, settings, cores, t.Load.Scale) {
		latencies[i] = histogram(time.Duration(min(p99, overloaded.Seconds()) * float64(time.Second)).Round(time.Microsecond))
	}
	for range t.Windows {
		for i := range c.Laws {
			n := int(t.Load.Of(ModelName(i)).RequestRate * windowLength.Seconds())
			list = append(list, measure.Window{
				Model: ModelName(i), Duration: windowLength, Requests: n, Inferences: n, Scheduled: n,
				Sub: []measure.SubWindow{{Requests: sampled, Latency: latencies[i]}},
			})
		}
	}
	return list
}

// queueWindows returns the windows of a trial of all models whose latencies are simulated.
func (c Company) queueWindows(t search.Trial, trial int) []measure.Window {
	settings, cores := c.Cell(t.Candidate)
	var list []measure.Window
	for k := range t.Windows {
		for i, latencies := range c.observed(trial*search.MostWindows+k, settings, cores, t.Load.Scale, t.Window.Seconds()) {
			n := latencies.Count()
			list = append(list, measure.Window{
				Model: ModelName(i), Start: time.Duration(k) * t.Window, Duration: t.Window, Requests: n, Inferences: n, Scheduled: n,
				Sub: []measure.SubWindow{{Requests: n, Duration: t.Window, Latency: latencies, Sum: time.Duration(n) * latencies.Mean()}},
			})
		}
	}
	return list
}

// curve returns the windows of a service trial of one model, while the others are idle.
func (c Company) curve(t search.Trial, trial int) []measure.Window {
	var list []measure.Window
	var times []time.Duration
	for i := range c.Laws {
		if ModelName(i) != t.Model {
			continue
		}
		x := c.setting(t.Candidate, i)
		busy := min(t.Load.Concurrency, x.Instances)
		r := rand.New(rand.NewPCG(c.Seed, 1<<61|uint64(trial)))
		for _, size := range t.Sizes {
			took := c.Time(i, x, float64(size), busy) * math.Exp(c.CurveNoise*r.NormFloat64())
			service := max(time.Duration(took*float64(time.Second)).Round(time.Microsecond), time.Microsecond)
			n := int(windowLength / service * time.Duration(busy))
			compute := time.Duration(n) * service
			list = append(list, measure.Window{
				Duration: windowLength, Requests: n, Inferences: n * size, Memory: memory,
				Sub: []measure.SubWindow{{Requests: 1, Latency: histogram(service)}},
				Server: measure.ServerStats{Requests: n, Inferences: n * size, Executions: n, ComputeInfer: compute,
					Batches: []measure.BatchStat{{Size: size, Executions: n, ComputeInfer: compute}}},
			})
			if times = append(times, service); t.EndsAfter(times) {
				return list
			}
		}
	}
	return list
}

// Carries returns the largest scale at which all models keep their limits with a candidate.
func (c Company) Carries(of search.Candidate) float64 {
	return c.carries(c.Cell(of))
}

// Best returns the largest scale of any candidate of a space. With more than three models it is the best
// of ten climbs that change one model's configuration, or a division, at a time.
func (c Company) Best(s search.Space) float64 {
	options := c.options(s)
	divisions := [][]int{nil}
	if c.DividesOnly {
		divisions = nil
	}
	if c.Divides || c.DividesOnly {
		divisions = append(divisions, c.divisions()...)
	}
	if len(c.Laws) > 3 {
		return c.climb(options, divisions)
	}
	best := 0.0
	for _, cores := range divisions {
		c.each(options, nil, cores, &best)
	}
	return best
}

// each tries all settings of the models after those that are set.
func (c Company) each(options [][]Setting, set []Setting, cores []int, best *float64) {
	i := len(set)
	if i == len(options) {
		if *best == 0 || c.holds(set, cores, *best) {
			*best = max(*best, c.Scale(set, cores))
		}
		return
	}
	for _, x := range options[i] {
		c.each(options, append(set[:i:i], x), cores, best)
	}
}

func (c Company) climb(options [][]Setting, divisions [][]int) float64 {
	r := rand.New(rand.NewPCG(c.Seed, 97))
	most := 0.0
	for range 10 {
		at := make([]Setting, len(options))
		for i := range at {
			at[i] = options[i][r.IntN(len(options[i]))]
		}
		cores := divisions[r.IntN(len(divisions))]
		best := c.Scale(at, cores)
		for better := true; better; {
			better = false
			try := func(settings []Setting, division []int) {
				if s := c.Scale(settings, division); s > best*(1+1e-6) {
					at, cores, best, better = settings, division, s, true
				}
			}
			for i := range options {
				for _, x := range options[i] {
					changed := append([]Setting(nil), at...)
					changed[i] = x
					try(changed, cores)
				}
			}
			for _, division := range divisions {
				try(at, division)
			}
		}
		most = max(most, best)
	}
	return most
}
