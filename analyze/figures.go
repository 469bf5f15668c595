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
	"tuner/spec/knobs"
)

// Recording holds what another program measured for one model. It has figures but not the windows
// behind them, so nothing has an interval.
type Recording struct {
	Model   string
	Source  string // the file that was read
	Configs []RecordedConfig
}

// RecordedConfig is one configuration of a recording.
type RecordedConfig struct {
	Name     string
	Default  bool
	Deployed *modelconfig.Config // empty if the recording does not have it
	GPU      bool                // its instances are on GPUs
	Points   []RecordedPoint
}

// RecordedPoint has the figures under one load. Figures that the recording lacks are missing from
// Values, never zero.
type RecordedPoint struct {
	Load   measure.Load // batch size 0 if the recording does not have it
	Values map[measure.Metric]float64
	GPUs   []measure.GPUWindow
}

// Rank ranks a recording as Analyze ranks a campaign. The result has no intervals, and
// Result.Recorded is set. The error is a LoadError or an ObjectiveError, as for Analyze.
func (rec Recording) Rank(goal search.Goal, o Options) (Result, error) {
	if o.Rank == spec.RankTop3Mean {
		goal = byThroughput(goal)
	}
	at, err := comparedAt(o.At, rec.loads(nil), rec.loads(func(c RecordedConfig) bool { return c.Default }))
	if err != nil {
		return Result{}, fmt.Errorf("cannot rank %s: %w", rec.Source, err)
	}
	configs, candidates := make([]Config, len(rec.Configs)), rec.candidates()
	trials := 0
	for i, c := range rec.Configs {
		text, err := modelconfig.Format(c.Deployed)
		if err != nil {
			return Result{}, fmt.Errorf("cannot rank %s: %s: %w", rec.Source, c.Name, err)
		}
		configs[i] = Config{Name: c.Name, Candidate: candidates[i], Setup: c.setup(), Deployed: c.Deployed, Text: string(text)}
		for _, p := range c.Points {
			configs[i].Points = append(configs[i].Points, p.point(goal))
		}
		slices.SortStableFunc(configs[i].Points, func(a, b Point) int { return compareLoads(a.Load, b.Load) })
		trials += len(c.Points)
	}
	if err := checkObjective(configs, goal); err != nil {
		return Result{}, fmt.Errorf("cannot rank %s: %w", rec.Source, err)
	}
	known := recorded{configs} // the same figures for every view
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

// loads returns the loads at which configurations were measured, without client batches. nil
// selects all configurations.
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

// knobRecordedAs is the name of a configuration, as a setting that tells it apart from others.
const knobRecordedAs = "recorded_as"

// candidates returns the candidate of each configuration. Configurations may differ in what no knob of the tables has, such
// as parameters and optimization. Those with equal settings have their names as a further one, since figures belong to a
// candidate.
func (rec Recording) candidates() []search.Candidate {
	list, times := make([]search.Candidate, len(rec.Configs)), map[string]int{}
	for i, c := range rec.Configs {
		list[i] = c.candidate()
		times[list[i].Key()]++
	}
	for i, c := range rec.Configs {
		if times[list[i].Key()] > 1 && !c.Default {
			list[i] = list[i].With(knobRecordedAs, search.Value(c.Name))
		}
	}
	return list
}

// candidate returns a configuration's settings that are knobs in the tables. Of one that the recording does not have, only
// the name is known.
func (c RecordedConfig) candidate() search.Candidate {
	switch {
	case c.Default:
		return search.Candidate{}
	case c.Deployed.GetName() == "":
		return search.NewCandidate(search.Setting{Knob: knobRecordedAs, Value: search.Value(c.Name)})
	}
	base := knobs.Base(c.Deployed)
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

// RecordedGPU stands for the execution provider of a recording on GPUs, which the recording does
// not name.
const RecordedGPU = "gpu"

// setup returns what the recording has of the configuration. Unknown fields are zero, instances
// too.
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

// point computes score and misses of a recorded point.
func (p RecordedPoint) point(goal search.Goal) Point {
	s := Sample{Values: map[measure.Metric]measure.Estimate{}, GPUs: p.GPUs}
	value := func(m measure.Metric) (float64, bool) {
		if m == measure.Cost && goal.Price > 0 && p.Values[measure.Throughput] > 0 {
			return goal.Cost(p.Values[measure.Throughput]), true
		}
		v, ok := p.Values[m]
		return v, ok
	}
	for _, m := range metricsOf(goal, "") {
		if v, ok := value(m); ok {
			s.Values[m] = measure.Estimate{Value: v, Lo: v, Hi: v}
		}
	}
	s.Misses = slices.Concat(unscored(s.Values, goal), goal.MissesOf(value))
	return Point{Load: p.Load, Sample: s, Score: noScore}
}

// Only returns the result with only the named configurations and the default. unknown are names
// that the result does not have. If the best, or the nearest, is not among them, the result has no
// explanation, and no statement: both are about the configuration that was left out.
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
		kept.Explanation, kept.Ending.Statement = Explanation{}, nil
	}
	kept.Top = 0
	for _, name := range names {
		if _, has := r.Config(name); !has {
			unknown = append(unknown, name)
		}
	}
	return kept, unknown
}

// recorded makes a recording's figures look like a posterior. They have no known errors.
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

// IsPredicted always returns true: a recording does not say how many requests are behind a figure.
func (r recorded) IsPredicted(posterior.Cell, measure.Metric) bool { return true }

// Joint returns the logarithms of the figures without errors. It returns false if no cell has the
// metric.
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
