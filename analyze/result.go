package analyze

import (
	"slices"
	"time"

	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/isolation"
	"tuner/model/modelconfig"
	"tuner/pipeline/steps"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/verdict"
	"tuner/spec"
	"tuner/spec/csvfiles"
	"tuner/spec/plots"
)

// Result is the outcome of a campaign. It is immutable and holds everything that a report needs.
type Result struct {
	Header journal.Header
	Folder string // output folder of the campaign, where RankFile found it; "" elsewhere
	// Placements of the campaign's runs, without repetitions; empty in older journals
	Placements []hostinfo.Placement
	Goal       search.Goal
	// Shapes: measured shapes by input name, without the batch dimension
	Shapes map[string][]int64
	// Requests are the shapes of all inputs in the measured requests; empty for a recording.
	Requests []RequestShape
	Pad      map[string]int64 // values with which clients pad inputs; 0 for others
	// Arrivals describe when the requests of a rate arrived, for people; "" for Poisson and in closed
	// loops.
	Arrivals string
	Cores    int           // usable cores of the machine
	Top      int           // number of configurations that tables and charts show, without the default; 0 all
	Rank     string        // spec.RankTop3Mean, or a ranking by the score
	At       *measure.Load // the load of the comparison, without a client batch; nil: each at its best load
	Each     bool          // the table also has rows for each load
	CSV      csvfiles.Files
	Plots    []plots.Plot // charts in addition to the usual ones
	Ending   Ending
	Account  Account
	Trials   int // number of trials, including failed ones
	Windows  int // number of load windows
	// Tried is the number of configurations that were tried, Failed that of trials without figures.
	// Both count the whole campaign, like Trials, even if Configs and Failures have only some
	// configurations (Only).
	Tried, Failed int
	// ServiceTrials is the number of service trials. They are part of the account only.
	ServiceTrials int
	Reused        []Reused   // earlier campaigns that the strategy learned from; no figure here contains them
	Configs       []Config   // best first; the default is always one of them
	Loads         []LoadBest // the best configuration at each measured load, ascending
	// Fronts: Pareto sets, the one of three metrics first (FrontMetrics); empty if nothing
	// satisfies the constraints
	Fronts   []Front
	Failures []Failure
	Course   []CourseStep  // the trials in order of time
	Folds    []search.Fold // combinations that were not tried, with reasons
	Withheld Withheld      // CPU time that others took
	Speed    measure.Speed // of the machine in closed loops
	Accuracy spec.Accuracy // how variants were compared with the original; Header.Variants has the outcome
	// Assigned lists the model's nodes that an execution provider took, as text for people.
	Assigned map[string]string
	// FirstStage names the best configuration that differs from the default only in what serves the
	// model: precision, runtime, execution provider, session options. It is the default if none is
	// better.
	//
	// FirstStage is never better than the answer. A first-stage configuration may have a better
	// objective and still not be recommended, since it lies outside the space or keeps the
	// constraints less surely. FirstStage then names the answer. It is "" if the winner's own
	// settings of that kind were not measured by themselves.
	FirstStage string
	// StageElsewhere means that they were measured, but on another server than the winner.
	// FirstStage then is "".
	StageElsewhere bool
	Explanation    Explanation
	// Verdict is the decision behind this result: the order, the answer and its probabilities.
	Verdict verdict.Verdict
	// Decide returns the decision under other constraints, from the same measurements. The
	// constraints may use the goal's metrics, throughput, mean latency, the goal's percentile and
	// memory. It is safe for concurrent use.
	Decide func([]search.Constraint) verdict.Verdict
	Steps  steps.List // of `tuner run`; empty if the campaign was run by itself
	// Models are several models, in the profile's order; empty for one model.
	Models []Served
	// Stages are those of a pipeline, in the profile's order, and last the pipeline itself; empty without one.
	// Models is then empty, since the traffic and the figures are those of one model.
	Stages []Served
	// Recorded is the file of another program with the figures; "" for a campaign. A recording has
	// no intervals, trials, windows or times, and does not know the machine.
	Recorded string
}

// Served is one of several models, with what the result of a single model has of it.
type Served struct {
	Header   journal.Header // that of a campaign of the model alone (journal.Header.Part)
	Calls    bool           // the pipeline itself, which calls the others
	Shapes   map[string][]int64
	Pad      map[string]int64
	Accuracy spec.Accuracy
}

// Reused is an earlier campaign from which a later one learned.
type Reused struct {
	From    string // its output folder
	Created time.Time
	// Same: same machine, ONNX Runtime and protocol: its trials count as measured; otherwise they
	// only help forecasts
	Same   bool
	Trials int
}

// Ending tells how the campaign ended.
type Ending struct {
	Interrupted bool     // by the user or by a crash, before the search was complete
	Reason      string   // for people
	Statement   []string // the verdict and Notes, in sentences; empty if another rule ranks the configurations, or if Only left the answer out
	Notes       []string // the strategy's remarks about its search
}

// Account splits the campaign's wall time. The parts add up to Elapsed.
type Account struct {
	Elapsed          time.Duration
	Windows          time.Duration // under measured load
	Launches         time.Duration // starting engine processes
	Reconfigurations time.Duration // loading another configuration into a running engine
	WarmUps          time.Duration // load outside of windows
	Decisions        time.Duration // all other time
}

// Share returns a part of the account as a share of Elapsed, 0..1.
func (a Account) Share(part time.Duration) float64 {
	if a.Elapsed <= 0 {
		return 0
	}
	return float64(part) / float64(a.Elapsed)
}

// Config is one configuration with all its figures.
type Config struct {
	// Name: <model>_config_default, or <model>_config_N, numbered from 0 in order of first trial
	Name      string
	Candidate search.Candidate
	Setup     Setup
	Deployed  *modelconfig.Config // served configuration; read-only; nil for several models
	Text      string              // Deployed as text of config.pbtxt; for several models, those of all
	// Parts are the configurations of several models, in the profile's order; empty for one model. Setup
	// then has the sum of their instances, and nothing else.
	Parts []ConfigPart
	// Policies are the host policies by which the instances of several models work, in the profile's order.
	// The server needs their options; empty where the models share all cores.
	Policies []isolation.Policy

	// Memory is the configuration's memory, the same for all its points. It is measured on the
	// finals' server if the configuration was confirmed there. Nil if unknown.
	Memory *footprint.Estimate

	Rank   int     // place in Result.Configs, from 1; 0 if nothing was measured
	Points []Point // ascending by load; empty if every trial failed
	Best   *Point  // the point that ranks the configuration; nil without one, or without one at Result.At
	// Score is the value that ranks the configuration, on log scale, higher is better. It is the
	// score of Best. With spec.RankTop3Mean it is that of the mean of the three highest
	// throughputs, and −∞ if other configurations have more loads.
	Score measure.Estimate
	// MeanOf is the number of throughputs in the mean behind Score. It is less than three only if
	// no configuration has three such loads. It is 0 if Score is that of Best, or −∞.
	MeanOf int
	// CurveOnly marks a configuration that was measured for the load curves only and lies outside
	// the profile's space. It never comes first while another one has figures.
	CurveOnly bool
	// FailedFinals marks a configuration that failed on a fresh launch and never served on a later
	// one. It ranks behind all others.
	FailedFinals bool
	// Gain is the factor by which the objective is better than the default's, each at its best
	// load. 2.1 is 2.1 × the throughput, or a latency 2.1 × shorter. Nil unless both satisfy the
	// constraints.
	Gain *measure.Estimate
	// Choice is the verdict's entry for the configuration at Best. It is nil without a score and in
	// views that the verdict does not cover. If the finals ran on another server, it is also nil on
	// the search's server.
	Choice *verdict.Choice
	// TiedWith names, for the answer, the configurations that are tied with it (package verdict),
	// at most the first twenty. For each of these it names the answer.
	TiedWith []string
}

// ConfigPart is the configuration of one of several models, or of a pipeline's.
type ConfigPart struct {
	Model    string // name under which the model is served
	Calls    bool   // it is the pipeline, which calls the others
	Setup    Setup
	Deployed *modelconfig.Config // served configuration; read-only
	Text     string              // Deployed as text of config.pbtxt
}

// Satisfies reports whether the configuration keeps every constraint at some load.
func (c Config) Satisfies() bool {
	if c.Choice != nil {
		return c.Choice.Holds >= verdict.Likely
	}
	return c.Best != nil && c.Best.Satisfies()
}

// Shortfall says why the configuration does not satisfy the constraints, or may not win (verdict.Choice.Shortfall). It is
// for configurations with a best point.
func (c Config) Shortfall() string {
	x := verdict.Choice{}
	if c.Choice != nil {
		x = *c.Choice
	}
	x.Misses, x.IsOutside, x.IsBroken = c.Best.Misses, c.CurveOnly, c.FailedFinals
	return x.Shortfall()
}

// mayWin reports whether the configuration may be the best.
func (c Config) mayWin() bool { return c.Satisfies() && !c.CurveOnly && !c.FailedFinals }

// Setup is the part of a configuration that tables and legends show.
type Setup struct {
	Provider       string // execution provider
	Runtime        string // the ONNX Runtime build, flavour@version
	Precision      string
	Instances      int           // 0: unknown, in a recording
	IntraOpThreads int           // per instance; 0 is ONNX Runtime's choice, all cores; below 0 unknown
	MaxBatchSize   int           // 0: the model has no batch dimension; below 0 unknown
	QueueDelay     time.Duration // below 0 unknown
}

// Threads returns the number of threads of all instances together.
func (s Setup) Threads(cores int) int {
	if s.IntraOpThreads > 0 {
		return s.Instances * s.IntraOpThreads
	}
	return s.Instances * max(cores, 1)
}

// Differences returns the number of fields in which two setups differ.
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
	// Score is the score of the goal's objective, on log scale, higher is better. It is −∞ if a
	// metric of the objective is unknown.
	Score     measure.Estimate
	Confirmed bool    // measured in the final phase, on fresh launches
	Searched  *Sample // for a confirmed point: the figures of the search phase; nil if it has none
}

// Sample has the figures of one configuration under one load, from all windows of one part of the
// campaign.
type Sample struct {
	Values map[measure.Metric]measure.Estimate // without metrics that were not measured
	// Misses: constraints that are missed, and metrics without which there is no score; empty if it
	// satisfies all
	Misses   []search.Miss
	Chances  []Chance // one for each constraint of the goal, in its order
	Windows  int
	Launches int // distinct engine launches
	// LaunchTime: the longest wait of its trials for a launch with the loading of the model; 0 if
	// none waited
	LaunchTime time.Duration
	WindowTime time.Duration // length of the windows together
	Requests   int           // completed without errors
	Errors     int
	MeanBatch  float64             // mean size of executed batches; 0 unknown
	BatchTime  float64             // s, mean time of an executed batch in its instance; 0 unknown
	Batches    []measure.BatchTime // by size; empty: unknown
	Flags      []measure.Flag
	Disturbed  int                 // windows with a flag of the machine (measure.Flag.IsOfMachine)
	GPUs       []measure.GPUWindow // figures of each GPU; empty without GPUs
}

// Violation returns the sum of the relative amounts by which constraints are missed.
func (s Sample) Violation() float64 {
	sum := 0.0
	for _, m := range s.Misses {
		sum += m.Violation
	}
	return sum
}

// Failure is a trial without figures.
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

// FailureGroup has the failures of one cause.
type FailureGroup struct {
	First Failure
	Count int
}

// FailureGroups returns the result's failures by cause, in order of first occurrence.
func (r Result) FailureGroups() []FailureGroup {
	var groups []FailureGroup
	known := map[measure.Failure]int{} // index of the group of each cause
	for _, f := range r.Failures {
		cause := measure.Failure{Stage: f.Stage, Reason: f.Reason}.Cause()
		i, isKnown := known[cause]
		if !isKnown {
			i = len(groups)
			known[cause], groups = i, append(groups, FailureGroup{First: f})
		}
		groups[i].Count++
	}
	return groups
}

// ByBestLoad reports whether each configuration is ranked by its own best load.
func (r Result) ByBestLoad() bool { return r.At == nil && r.Rank != spec.RankTop3Mean }

// Winner returns the answer if it is likely to keep the constraints. It returns false if no
// configuration is.
func (r Result) Winner() (Config, bool) {
	if len(r.Configs) == 0 || !r.Configs[0].mayWin() {
		return Config{}, false
	}
	return r.Configs[0], true
}

// Nearest returns the configuration that misses the constraints least. It returns false if a
// configuration that may be deployed satisfies them, or if nothing was measured.
func (r Result) Nearest() (Config, bool) {
	if len(r.Configs) == 0 || r.Configs[0].Best == nil || r.Configs[0].mayWin() {
		return Config{}, false
	}
	return r.Configs[0], true
}

// Config returns the configuration with that name, and false if it is unknown.
func (r Result) Config(name string) (Config, bool) {
	for _, c := range r.Configs {
		if c.Name == name {
			return c, true
		}
	}
	return Config{}, false
}

// Default returns the default configuration. Every Result of Analyze has it.
func (r Result) Default() Config {
	for _, c := range r.Configs {
		if c.Candidate.IsDefault() {
			return c
		}
	}
	return Config{}
}
