package analyze

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tuner/journal"
	"tuner/measure"
	"tuner/modelconfig"
	"tuner/search"
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
		configs[i] = ranked(configs[i], configs[i].Points, at)
		trials += len(c.Points)
	}
	header := journal.Header{Model: rec.Model}
	if err := checkObjective(configs, goal); err != nil {
		return Result{}, fmt.Errorf("cannot rank %s: %w", rec.Source, err)
	}
	if o.Rank == spec.RankTop3Mean {
		configs = scoredByTopMean(header, configs)
	}
	r := Result{
		Header: header, Goal: goal, Top: o.Top, Rank: o.Rank, At: at, Each: o.At.Each, CSV: o.CSV, Plots: o.Plots, Trials: trials, Tried: len(configs),
		Recorded: rec.Source, Configs: compare(rank(configs, newYardstick(configs, goal, 0), ""), goal),
	}
	r.Loads, r.Fronts = bestAtLoads(r.Configs, goal, 0), fronts(r.Configs, goal, at)
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
		settings = append(settings, search.Setting{Knob: search.KnobExecutionProvider, Value: "cuda"})
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
	score, ok := goal.ScoreOf(value)
	if !ok {
		score = math.Inf(-1)
	}
	s.Score = measure.Estimate{Value: score, Lo: score, Hi: score}
	return Point{Load: p.Load, Sample: s}
}

// Only is the result with no other configurations than those named and the default; unknown are the names that it does not have. Where the best,
// or the nearest, is none of them nothing is explained.
func (r Result) Only(names []string) (kept Result, unknown []string) {
	kept = r
	kept.Configs = slices.DeleteFunc(slices.Clone(r.Configs), func(c Config) bool {
		return !c.Candidate.IsDefault() && !slices.Contains(names, c.Name)
	})
	isOther := func(name string) bool { _, is := kept.Config(name); return !is }
	kept.Loads, kept.Fronts = bestAtLoads(kept.onBestServer(), r.Goal, r.Cores), fronts(kept.onBestServer(), r.Goal, r.At)
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
