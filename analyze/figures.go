package analyze

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/ort/provider"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
	"tuner/spec"
)

// Recording is what another program measured of one model: figures without the windows that they came from, and so without intervals.
type Recording struct {
	Model   string
	Source  string // file that it was read from
	Configs []RecordedConfig
}

// RecordedConfig is one configuration of a recording.
type RecordedConfig struct {
	Name     string
	Default  bool
	Deployed *modelconfig.Config // empty where the recording does not tell
	GPU      bool                // its instances are on GPUs
	Points   []RecordedPoint
}

// RecordedPoint is what was measured under one load. What the recording does not tell is missing, never zero.
type RecordedPoint struct {
	Load   measure.Load // without a batch size where that is not told
	Values map[measure.Metric]float64
	GPUs   []measure.GPUWindow
}

// Rank ranks a recording as Analyze ranks a campaign. Nothing in the result has an interval; Result.Recorded is set. The error is a
// LoadError or an ObjectiveError, as that of Analyze.
func (rec Recording) Rank(goal search.Goal, o Options) (Result, error) {
	if o.Rank == spec.RankTop3Mean {
		goal = byThroughput(goal)
	}
	at, err := comparedAt(o.At, rec.loads(nil), rec.loads(func(c RecordedConfig) bool { return c.Default }))
	if err != nil {
		return Result{}, fmt.Errorf("cannot rank %s: %w", rec.Source, err)
	}
	configs := make([]Config, len(rec.Configs))
	trials := 0
	for i, c := range rec.Configs {
		text, err := modelconfig.Format(c.Deployed)
		if err != nil {
			return Result{}, fmt.Errorf("cannot rank %s: %s: %w", rec.Source, c.Name, err)
		}
		configs[i] = Config{Name: c.Name, Candidate: c.candidate(), Setup: c.setup(), Deployed: c.Deployed, Text: string(text)}
		for _, p := range c.Points {
			configs[i].Points = append(configs[i].Points, p.point(goal))
		}
		slices.SortStableFunc(configs[i].Points, func(a, b Point) int { return compareLoads(a.Load, b.Load) })
		trials += len(c.Points)
	}
	if err := checkObjective(configs, goal); err != nil {
		return Result{}, fmt.Errorf("cannot rank %s: %w", rec.Source, err)
	}
	known := recorded{configs} // figures, whatever a view makes of them
	decide := func(constraints []search.Constraint, at *measure.Load) verdict.Verdict {
		other := goal
		other.Constraints = constraints
		return verdict.Decide(known, verdict.Options{Goal: other, Confidence: o.Confidence, At: at})
	}
	v := newView(decide(goal.Constraints, at), at, decide(goal.Constraints, nil))
	configs = v.ordered(configs)
	header := journal.Header{Model: rec.Model}
	if o.Rank == spec.RankTop3Mean {
		configs = byTopMean(header, scoredByTopMean(header, configs), goal)
	}
	r := Result{
		Header: header, Goal: goal, Top: o.Top, Rank: o.Rank, At: at, Each: o.At.Each, CSV: o.CSV, Plots: o.Plots,
		Trials: trials, Tried: len(configs), Recorded: rec.Source, Configs: configs, Verdict: v.verdict,
	}
	r.Loads = bestAtLoads(r.Configs, func(at measure.Load) view { return newView(decide(goal.Constraints, &at), &at) })
	r.Decide = func(constraints []search.Constraint) verdict.Verdict { return decide(constraints, at) }
	r.Fronts = fronts(r.Configs, v, goal)
	return r, nil
}

// loads are those that configurations were measured at, without client batches; of all where of is nil.
func (rec Recording) loads(of func(RecordedConfig) bool) []measure.Load {
	var list []measure.Load
	for _, c := range rec.Configs {
		if of != nil && !of(c) {
			continue
		}
		for _, p := range c.Points {
			p.Load.BatchSize = 0
			list = append(list, p.Load)
		}
	}
	return list
}

// candidate says what a configuration sets, as far as it is one of the knobs that tables show.
func (c RecordedConfig) candidate() search.Candidate {
	if c.Default {
		return search.Candidate{}
	}
	base := spec.Base(c.Deployed)
	settings := []search.Setting{{Knob: search.KnobInstanceCount, Value: search.IntValue(c.setup().Instances)},
		{Knob: search.KnobMaxBatchSize, Value: search.IntValue(int(c.Deployed.GetMaxBatchSize()))}}
	for _, knob := range []string{search.KnobPreferredBatchSize, search.KnobMaxQueueDelay} {
		if v, known := base[knob]; known && v != search.IntsValue(nil) {
			settings = append(settings, search.Setting{Knob: knob, Value: v})
		}
	}
	if c.GPU {
		settings = append(settings, search.Setting{Knob: search.KnobExecutionProvider, Value: provider.CUDA})
	}
	return search.NewCandidate(settings...)
}

// RecordedGPU is the execution provider of what was recorded on GPUs: which one it was is not told.
const RecordedGPU = "gpu"

// setup is zero, instances too, where the recording does not tell the configuration.
func (c RecordedConfig) setup() Setup {
	if c.Deployed.GetName() == "" {
		return Setup{}
	}
	s := Setup{IntraOpThreads: -1, MaxBatchSize: int(c.Deployed.GetMaxBatchSize()),
		QueueDelay: time.Duration(c.Deployed.GetDynamicBatching().GetMaxQueueDelayMicroseconds()) * time.Microsecond}
	for _, g := range c.Deployed.GetInstanceGroup() {
		s.Instances += max(1, int(g.GetCount()))
	}
	s.Instances = max(1, s.Instances)
	if c.GPU {
		s.Provider = RecordedGPU
	}
	return s
}

// point judges what was measured under a load.
func (p RecordedPoint) point(goal search.Goal) Point {
	s := Sample{Values: map[measure.Metric]measure.Estimate{}, GPUs: p.GPUs}
	value := func(m measure.Metric) (float64, bool) {
		if m == measure.Cost && goal.Price > 0 && p.Values[measure.Throughput] > 0 {
			return goal.Cost(p.Values[measure.Throughput]), true
		}
		v, ok := p.Values[m]
		return v, ok
	}
	for _, m := range metricsOf(goal) {
		if v, ok := value(m); ok {
			s.Values[m] = measure.Estimate{Value: v, Lo: v, Hi: v}
		}
	}
	s.Misses = slices.Concat(unscored(s.Values, goal), goal.MissesOf(value))
	return Point{Load: p.Load, Sample: s, Score: noScore}
}

// Only is the result with no other configurations than those named and the default; unknown are the names that it does not have. Where the best,
// or the nearest, is none of them nothing is explained.
func (r Result) Only(names []string) (kept Result, unknown []string) {
	kept = r
	kept.Configs = slices.DeleteFunc(slices.Clone(r.Configs), func(c Config) bool {
		return !c.Candidate.IsDefault() && !slices.Contains(names, c.Name)
	})
	isOther := func(name string) bool { _, is := kept.Config(name); return !is }
	kept.Loads = nil
	for _, l := range r.Loads {
		if l.Best != nil && isOther(l.Best.Name) {
			l.Best = nil
		}
		kept.Loads = append(kept.Loads, l)
	}
	v := newView(r.Verdict, r.At)
	v.isTwo = r.Header.Finals != nil
	kept.Fronts = fronts(kept.onBestServer(), v, r.Goal)
	kept.Course = slices.DeleteFunc(slices.Clone(r.Course), func(s CourseStep) bool { return isOther(s.Name) })
	kept.Failures = slices.DeleteFunc(slices.Clone(r.Failures), func(f Failure) bool { return isOther(f.Name) })
	kept.Explanation.Subjects = slices.DeleteFunc(slices.Clone(r.Explanation.Subjects), func(s Subject) bool { return isOther(s.Name) })
	if len(kept.Configs) == 0 || kept.Configs[0].Name != r.Configs[0].Name {
		kept.Explanation = Explanation{} // which is of the one that is left out
	}
	kept.Top = 0
	for _, name := range names {
		if _, has := r.Config(name); !has {
			unknown = append(unknown, name)
		}
	}
	return kept, unknown
}

// recorded makes the figures of a recording what is known: they have no errors that could be told.
type recorded struct{ configs []Config }

// Measured lists all points.
func (r recorded) Measured() []posterior.Measured {
	var list []posterior.Measured
	for _, c := range r.configs {
		for _, p := range c.Points {
			list = append(list, posterior.Measured{Cell: posterior.Cell{Candidate: c.Candidate, Load: p.Load}, Trials: 1, Errors: p.Values[measure.ErrorRate].Value})
		}
	}
	return list
}

// IsPredicted is true: how many requests stand behind a figure is not told.
func (r recorded) IsPredicted(posterior.Cell, measure.Metric) bool { return true }

// Joint is the figures' logarithms without errors; false where no cell has the metric.
func (r recorded) Joint(cells []posterior.Cell, metric measure.Metric) (posterior.Joint, bool) {
	means, isKnown := make([]float64, len(cells)), false
	for i, cell := range cells {
		means[i] = math.NaN()
		if x, ok := r.value(cell, metric); ok && x > 0 {
			means[i], isKnown = math.Log(x), true
		}
	}
	return posterior.NewJoint(means, make([]float64, len(cells)*len(cells))), isKnown
}

func (r recorded) value(cell posterior.Cell, metric measure.Metric) (float64, bool) {
	for _, c := range r.configs {
		if c.Candidate.Key() != cell.Candidate.Key() {
			continue
		}
		for _, p := range c.Points {
			if p.Load == cell.Load {
				e, ok := p.Values[metric]
				return e.Value, ok
			}
		}
	}
	return 0, false
}
