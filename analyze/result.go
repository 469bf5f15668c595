package analyze

import (
	"slices"
	"time"

	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/pipeline/steps"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/verdict"
	"tuner/spec"
)

// Result is what a campaign found. It is immutable, and holds all that a report needs.
type Result struct {
	Header journal.Header
	Goal   search.Goal
	Shapes map[string][]int64 // the inputs' shapes that were measured, without the batch dimension, by input name
	// Requests are the shapes of all inputs in the requests that were measured; none of a recording.
	Requests []RequestShape
	Cores    int           // usable cores of the machine
	Top      int           // how many configurations tables and charts bring out, the default not counted; 0 all
	Rank     string        // spec.RankTop3Mean, or else by the score
	At       *measure.Load // where all configurations are compared, without a client batch; nil: each at its best load
	Each     bool          // the table tells of each load by itself too
	CSV      spec.CSVFiles
	Plots    []spec.Plot // pictures beside the usual ones
	Ending   Ending
	Account  Account
	Trials   int // trials made, failed ones included
	Windows  int // load windows measured
	// Tried and Failed count the configurations that were tried and the trials without figures: of the whole campaign, as Trials, also where
	// Configs and Failures are those of some configurations alone (Only).
	Tried, Failed int
	// ServiceTrials is how many trials told what batches take in an engine process: they are in the account, and in nothing else.
	ServiceTrials int
	Reused        []Reused   // earlier campaigns that the strategy learned from, in no figure here
	Configs       []Config   // best first; the default is always one of them
	Loads         []LoadBest // what is best at each load that was measured, ascending
	Fronts        []Front    // Pareto sets, that of three metrics first (FrontMetrics); none where nothing satisfies the constraints
	Failures      []Failure
	Course        []CourseStep  // the trials in the order in which they were made
	Folds         []search.Fold // combinations that were not tried, with the reasons
	Withheld      Withheld      // what others took of the CPU time
	Accuracy      spec.Accuracy // how variants were compared with the original; what came of it is in Header.Variants
	// Assigned says which nodes of the model an execution provider took, for people.
	Assigned map[string]string
	// FirstStage names the best configuration that differs from the default in what serves the model alone (precision,
	// runtime, execution provider, session options); the default itself when none such is better. It is at most the
	// answer: where such a configuration has a better objective than the answer and may not be recommended all the same (it
	// lies outside of the space, or keeps the constraints less surely), FirstStage names the answer. It is "" when the
	// winner's own settings of that kind were not measured by themselves.
	FirstStage string
	// StageElsewhere says that they were, but on another server than the winner: FirstStage is "".
	StageElsewhere bool
	Explanation    Explanation
	// Verdict is the decision that everything here follows: the order, the answer, what holds how surely.
	Verdict verdict.Verdict
	// Decide is the decision under other constraints, by the same measurements. The metrics that they limit
	// must be known: the goal's, throughput, mean latency, the goal's percentile, memory. It may be called
	// from several goroutines.
	Decide func([]search.Constraint) verdict.Verdict
	Steps  steps.List // of `tuner run`; none where the campaign was run by itself
	// Recorded names the file of another program that the figures come from: they have no intervals, and neither trials, windows, times nor
	// a machine are known. "" for a campaign.
	Recorded string
}

// Reused is an earlier campaign that a later one learned from.
type Reused struct {
	From    string // its output folder
	Created time.Time
	Same    bool // machine, ONNX Runtime and protocol: its trials counted as measured; else for forecasts alone
	Trials  int
}

// Ending says how the campaign came to its end.
type Ending struct {
	Interrupted bool     // by the user or by a crash: more was to come
	Reason      string   // for people
	Statement   []string // the verdict and Notes, in sentences; none where configurations are not ranked by it
	Notes       []string // what the strategy says of its search
}

// Account says where the campaign's wall time went; the parts add up to Elapsed.
type Account struct {
	Elapsed          time.Duration
	Windows          time.Duration // under measured load
	Launches         time.Duration // starting engine processes
	Reconfigurations time.Duration // loading another configuration into a running engine
	WarmUps          time.Duration
	Decisions        time.Duration // the rest
}

// Share returns a part's share of the whole, 0..1.
func (a Account) Share(part time.Duration) float64 {
	if a.Elapsed <= 0 {
		return 0
	}
	return float64(part) / float64(a.Elapsed)
}

// Config is one configuration with all its figures.
type Config struct {
	Name      string // <model>_config_default, or <model>_config_N in the order of first trial, from 0
	Candidate search.Candidate
	Setup     Setup
	Deployed  *modelconfig.Config // what it is served with; not to be changed
	Text      string              // Deployed as the text of a config.pbtxt

	// Memory is what the configuration holds, on the finals' server where it was confirmed there:
	// the memory of all its points. Nil where that is not known.
	Memory *footprint.Estimate

	Rank   int     // from 1, the place in Result.Configs; 0 when nothing was measured
	Points []Point // ascending by load; empty when every trial failed
	Best   *Point  // the point that the configuration is ranked by; nil when there is none, or none at Result.At
	// Score is what it is ranked by, on log scale, higher is better: that of Best, or of the mean of its three highest throughputs
	// (spec.RankTop3Mean), −∞ with fewer than others have.
	Score measure.Estimate
	// MeanOf is how many throughputs Score is the mean of, fewer than three where no configuration has three such loads; 0 where it is of Best,
	// or −∞.
	MeanOf int
	// CurveOnly marks one that was measured for the load curves alone and lies outside of what the profile asks to search: it never
	// comes first while another has figures.
	CurveOnly bool
	// FailedFinals marks one that did not serve on a fresh launch, and on none after that: it ranks behind all others.
	FailedFinals bool
	// Gain is the factor by which the objective is better than the default's, each at its best load: 2.1 is 2.1 × the
	// throughput, or a latency 2.1 × shorter. Nil unless both satisfy the constraints.
	Gain *measure.Estimate
	// Choice is what the verdict says of the configuration at Best; nil where the verdict is not about that: in other views, on the
	// search's server where the finals ran on another one, and without a score.
	Choice *verdict.Choice
	// TiedWith names, of the answer, the configurations that differ from it by no more than a tie (package verdict), the first twenty of
	// many; of each of these, the answer.
	TiedWith []string
}

// Satisfies reports whether some load was found under which the configuration keeps every constraint.
func (c Config) Satisfies() bool {
	if c.Choice != nil {
		return c.Choice.Holds >= verdict.Likely
	}
	return c.Best != nil && len(c.Best.Misses) == 0
}

// mayWin reports whether the configuration may be named as best.
func (c Config) mayWin() bool { return c.Satisfies() && !c.CurveOnly && !c.FailedFinals }

// Setup is the part of a configuration that tables and legends show.
type Setup struct {
	Provider       string // execution provider
	Runtime        string // ONNX Runtime's build, flavour@version
	Precision      string
	Instances      int // 0: nothing is known, in a recording
	IntraOpThreads int // of each instance; 0 is ONNX Runtime's choice, all cores; below 0 unknown
	MaxBatchSize   int // 0: the model does not batch
	QueueDelay     time.Duration
}

// Threads is the number of threads that all instances together run on.
func (s Setup) Threads(cores int) int {
	if s.IntraOpThreads > 0 {
		return s.Instances * s.IntraOpThreads
	}
	return s.Instances * max(cores, 1)
}

// Differences counts the fields in which two setups differ.
func (s Setup) Differences(t Setup) int {
	n := 0
	for _, differs := range []bool{
		s.Provider != t.Provider, s.Runtime != t.Runtime, s.Precision != t.Precision, s.Instances != t.Instances,
		s.IntraOpThreads != t.IntraOpThreads, s.MaxBatchSize != t.MaxBatchSize, s.QueueDelay != t.QueueDelay,
	} {
		if differs {
			n++
		}
	}
	return n
}

// Point is one configuration under one load.
type Point struct {
	Load measure.Load
	Sample
	// Score is that of the goal's objective, on log scale, higher is better; −∞ where a metric of it is not known.
	Score     measure.Estimate
	Confirmed bool    // measured in the final phase, on fresh launches
	Searched  *Sample // for a confirmed point: what the search phase had measured; nil when it had not
}

// Sample is the figures of one configuration under one load, from all windows of one part of the campaign.
type Sample struct {
	Values     map[measure.Metric]measure.Estimate // without the metrics that could not be measured
	Misses     []search.Miss                       // constraints that are not kept, and what leaves it without a score; empty when it satisfies all
	Chances    []Chance                            // of each constraint of the goal, in its order
	Windows    int
	Launches   int           // distinct engine launches
	LaunchTime time.Duration // the longest of those that its trials waited for, until the model was loaded; 0 when none did
	Requests   int           // completed without error
	Errors     int
	MeanBatch  float64 // executed by the server; 0 unknown
	Flags      []measure.Flag
	GPUs       []measure.GPUWindow // what each did; none without
}

// Violation is the summed relative amount by which constraints are missed.
func (s Sample) Violation() float64 {
	sum := 0.0
	for _, m := range s.Misses {
		sum += m.Violation
	}
	return sum
}

// Failure is a trial that yielded no figures.
type Failure struct {
	Name      string // of the configuration
	Candidate search.Candidate
	Load      measure.Load
	Stage     measure.Stage
	Reason    string
}

// IsMeasured reports whether some configuration has figures.
func (r Result) IsMeasured() bool {
	return slices.ContainsFunc(r.Configs, func(c Config) bool { return len(c.Points) > 0 })
}

// FailureGroup is failures with the same stage and reason.
type FailureGroup struct {
	First Failure
	Count int
}

// FailureGroups are the result's failures by stage and reason, in the order in which each
// happened first.
func (r Result) FailureGroups() []FailureGroup {
	var groups []FailureGroup
	for _, f := range r.Failures {
		i := slices.IndexFunc(groups, func(g FailureGroup) bool { return g.First.Stage == f.Stage && g.First.Reason == f.Reason })
		if i < 0 {
			groups = append(groups, FailureGroup{First: f})
			i = len(groups) - 1
		}
		groups[i].Count++
	}
	return groups
}

// ByBestLoad reports whether each configuration is ranked by its own best load.
func (r Result) ByBestLoad() bool { return r.At == nil && r.Rank != spec.RankTop3Mean }

// Winner returns the answer where it is likely to keep the constraints, and false when nothing is.
func (r Result) Winner() (Config, bool) {
	if len(r.Configs) == 0 || !r.Configs[0].mayWin() {
		return Config{}, false
	}
	return r.Configs[0], true
}

// Nearest returns, when nothing that may be deployed satisfies the constraints, the configuration that misses them least; false
// when one satisfies them or nothing was measured.
func (r Result) Nearest() (Config, bool) {
	if len(r.Configs) == 0 || r.Configs[0].Best == nil || r.Configs[0].mayWin() {
		return Config{}, false
	}
	return r.Configs[0], true
}

// Config returns the configuration of that name, false when there is none.
func (r Result) Config(name string) (Config, bool) {
	for _, c := range r.Configs {
		if c.Name == name {
			return c, true
		}
	}
	return Config{}, false
}

// Default returns the default configuration, which is always there in a Result that Analyze made.
func (r Result) Default() Config {
	for _, c := range r.Configs {
		if c.Candidate.IsDefault() {
			return c
		}
	}
	return Config{}
}
