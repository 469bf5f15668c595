// Package compare compares results of different runs: campaigns, gates, runs of `tuner perf`, and
// files of other programs.
//
// Read reads a run in any of these forms. Of compares the first run with each of the others: what
// changed per configuration, load and metric, with a 95 % interval, the winners, and the facts in
// which the runs differ. Package compare/output writes that. Of is pure: it measures and opens
// nothing.
package compare

import (
	"tuner/measure"
	"tuner/search"
)

// Format is the version of the JSON form. It grows when a field changes its meaning or disappears.
const Format = 1

// Kind is the program or verb that made a run.
type Kind string

// The kinds of runs.
const (
	Campaign Kind = "campaign" // result.json of `tuner run` and `tuner analyze`
	Gate     Kind = "gate"     // gate.json of `tuner gate`
	Perf     Kind = "perf"     // JSON of `tuner perf`
	Imported Kind = "imported" // figures of Model Analyzer or perf_analyzer
)

// Comparison compares the first run with each of the others.
type Comparison struct {
	Format int    `json:"format" jsonschema:"const=1"`   // version of this format: 1
	Runs   []Run  `json:"runs" jsonschema:"minItems=2"`  // the runs, as they were named
	Pairs  []Pair `json:"pairs" jsonschema:"minItems=1"` // the first run against each of the others
	// standard deviation of a metric's logarithm between two runs of one server on one machine
	Spread float64 `json:"spread" jsonschema:"minimum=0"`
}

// Run is one of the runs that are compared.
type Run struct {
	Name    string `json:"name"`                   // short name, unique in the comparison
	Path    string `json:"path"`                   // file that was read
	Kind    Kind   `json:"kind" jsonschema:"enum"` // what made the run
	Model   string `json:"model"`                  // name of the model
	Created string `json:"created,omitempty"`      // when the run began, RFC 3339; absent where unknown
	Answer  string `json:"answer"`                 // the run's own answer, for people
	Winner  string `json:"winner,omitempty"`       // name of its best configuration; absent without one
	// facts by name: machine, versions, model files, shapes, goal
	Facts          map[string]string `json:"facts"`
	Configurations []Configuration   `json:"configurations"` // configurations with figures

	shown    []measure.Metric // metrics of the run's goal
	several  bool             // it is of several models
	space    search.Space     // of a campaign: it knows the knobs' values in the default
	withheld withheld
}

// Configuration is a configuration of a run.
type Configuration struct {
	Name        string  `json:"name"`             // its name in the run
	Key         string  `json:"key"`              // settings that name it in all runs; default for the default
	Description string  `json:"description"`      // the settings for people
	Config      string  `json:"config,omitempty"` // text of config.pbtxt; absent where unknown
	Points      []Point `json:"points"`           // its figures, by load

	settings search.Candidate  // none for the default, and where the key is a name
	tied     []string          // names of configurations that are as good
	misses   []string          // constraints that it misses at its best load
	gain     *measure.Estimate // factor over the default, at the best load
	best     measure.Load      // the best load; zero if it is unknown
	// the figures at the best load were confirmed, so that its search has come to an end
	isConfirmed bool
}

// Point has the figures of a configuration under a load.
type Point struct {
	// the server of the figures, where a run measured two: that of the search or that of the finals; absent otherwise
	Server string                    `json:"server,omitempty" jsonschema:"enum=search,enum=finals"`
	Load   measure.Load              `json:"load"`   // the load
	Values map[measure.Metric]Figure `json:"values"` // figures by metric, in base units

	served  string // name of the server in a campaign
	samples []Sample
}

// Sample is one measurement of a point: a window, or a pair of a gate.
type Sample struct {
	Requests int                        // answered requests; 0 where unknown
	Values   map[measure.Metric]float64 // in base units
}

// Samples returns the point's single measurements, for programs with tests of their own.
func (p Point) Samples() []Sample { return p.samples }

// Figure is a figure with its 95 % interval. Both ends are the figure itself if no interval is
// known.
type Figure struct {
	Value float64 `json:"value"` // the figure
	Lo    float64 `json:"lo"`    // lower end of its 95 % interval
	Hi    float64 `json:"hi"`    // upper end of its 95 % interval
}

// Pair compares two runs.
type Pair struct {
	A string `json:"a"` // name of the first run
	B string `json:"b"` // name of the other run
	// metrics that reports show: throughput, p99, and those of the goals
	Shown   []measure.Metric `json:"shown"`
	Changes []Change         `json:"changes"` // by configuration, load and metric
	Common  []Common         `json:"common"`  // by metric, what all its changes share; for metrics that reports show
	// changes of factors over the default, in which the speed of the machine cancels
	Gains       []Change     `json:"gains"`
	OnlyA       []string     `json:"only_a"`       // configurations and loads that only the first run has
	OnlyB       []string     `json:"only_b"`       // configurations and loads that only the other run has
	Winner      []string     `json:"winner"`       // who won, and why that changed, in sentences
	Differences []Difference `json:"differences"`  // facts in which the runs differ
	ConfigDiffs []ConfigDiff `json:"config_diffs"` // differences of config.pbtxt
	Notes       []string     `json:"notes"`        // remarks on the comparison, in sentences
}

// Direction tells what a change is known to be.
type Direction string

// The directions of a change.
const (
	Better   Direction = "better" // proven, for a metric with a better side
	Worse    Direction = "worse"  // proven, for a metric with a better side
	NotShown Direction = "~"      // nothing is shown: the interval holds zero, or is unknown
)

// Change is the change of a figure from the first run to the other.
type Change struct {
	Configuration string `json:"configuration"` // its name in the first run
	Other         string `json:"other"`         // its name in the other run
	Key           string `json:"key"`           // its settings
	// the server of the figures, where a run measured two: that of the search or that of the finals; absent otherwise
	Server string         `json:"server,omitempty" jsonschema:"enum=search,enum=finals"`
	Load   measure.Load   `json:"load,omitzero"`    // the load; absent for a gain
	Metric measure.Metric `json:"metric,omitempty"` // the metric; absent for a gain
	A      Figure         `json:"a"`                // figure of the first run
	B      Figure         `json:"b"`                // figure of the other run
	// relative change with its 95 % interval, corrected for CPU time that others took; absent if a
	// figure has no interval
	Change    *Figure   `json:"change,omitempty"`
	Direction Direction `json:"direction" jsonschema:"enum"` // what is shown

	shift shift // the change as a logarithm, where Change is set
}

// Difference is a fact that differs.
type Difference struct {
	Fact string `json:"fact"` // name of the fact
	A    string `json:"a"`    // in the first run; empty where unknown
	B    string `json:"b"`    // in the other run; empty where unknown
}

// ConfigDiff is the difference of two config.pbtxt.
type ConfigDiff struct {
	Title string   `json:"title"` // whose files: default, or winner
	Lines []string `json:"lines"` // lines that only one has, with - (first run) or + (other run) before
}
