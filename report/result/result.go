// Package result has the types of result.json, the machine-readable result of `tuner analyze`.
//
// Package report/json writes the file from an analyzed campaign. Package export reads it, and so
// may other programs: tests of this package generate docs/reference/result-fields.md, and the JSON
// Schema docs/reference/result.schema.json, from these types. The package holds data. It ranks
// nothing, rounds nothing and opens no file.
//
// Times are seconds, sizes are bytes, and rates are per second, unless a comment says otherwise.
package result

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"tuner/analyze"
	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/mix"
	"tuner/model/precision/accuracy"
	"tuner/ort/addon"
	"tuner/pipeline/steps"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/verdict"
)

// Format is the version of result.json. It increases when a field changes its meaning or
// disappears. New fields may appear.
const Format = 1

// FileName is the file's name in the output folder.
const FileName = "result.json"

// Status tells whether a configuration satisfies the constraints.
type Status string

// The statuses of a result.
const (
	Satisfied  Status = "satisfied"  // the best configuration satisfies the constraints
	Infeasible Status = "infeasible" // no configuration does
	Unmeasured Status = "unmeasured" // every trial failed
)

// Recorded is the state of an answer about figures of another program. They have no intervals, so
// nothing is proven.
const Recorded verdict.State = "recorded"

// Result is the whole file.
type Result struct {
	Format int `json:"format" jsonschema:"const=1"` // version of this format: 1
	// whether the best configuration satisfies the constraints; infeasible: no configuration does;
	// unmeasured: nothing was measured, for example because every trial failed
	Status  Status `json:"status" jsonschema:"enum"`
	Summary string `json:"summary"` // the answer in a few sentences
	Answer  Answer `json:"answer"`  // head of every report
	Model   string `json:"model"`   // served name of the model; of several models their names, joined by +
	// several models: each with its traffic, in the order of the profile; absent for one model
	Models []Served `json:"models,omitempty"`
	// the stages of a pipeline, by the names under which they are served; absent without one. The model is
	// then the pipeline
	Stages []string `json:"stages,omitempty"`
	Best   string   `json:"best,omitempty"` // name of the best configuration, if one satisfies the constraints
	// name of the configuration that misses the constraints least, if none satisfies them
	Nearest string `json:"nearest,omitempty"`
	Goal    Goal   `json:"goal"` // what was asked for

	// shapes of the inputs in the measured requests; absent in an import
	Requests []Request `json:"requests,omitempty"`
	// when the requests of a rate arrived, for people; absent for Poisson and for closed loops
	Arrivals string `json:"arrivals,omitempty"`
	// kinds of requests of different shapes before any padding, in ascending order of their elements;
	// absent for one shape.
	// requests then has the shapes of the most of them
	Mix            mix.Mix         `json:"mix,omitempty"`
	RankedBy       Ranking         `json:"ranked_by"`      // how configurations are ranked
	Configurations []Configuration `json:"configurations"` // configurations that were measured, the best first; the default is one of them
	Loads          []BestAtLoad    `json:"loads"`          // the best configuration at each load
	Pareto         []Front         `json:"pareto"`         // the Pareto sets: of three metrics together, then of each two
	// why the best is the best; absent where nothing was measured, and in a report of configurations
	// without the best
	Explanation *Explanation `json:"explanation,omitempty"`
	// name of the best configuration with the default's instances and batching; absent where the
	// settings of the best were not measured in this way
	FirstStage string    `json:"first_stage,omitempty"`
	Variants   []Variant `json:"variants"` // the model in other precisions, as compared with the original
	Failures   []Failure `json:"failures"` // trials without figures
	LeftOut    []Fold    `json:"left_out"` // candidates that were never measured, by reason

	Trials int `json:"trials" jsonschema:"minimum=0"` // number of trials of the campaign, failed ones included, without service trials
	// number of measurement windows of these trials; absent in an import
	Windows *int `json:"windows,omitempty" jsonschema:"minimum=0"`
	// number of trials that measured how long batches take in an engine process
	ServiceTrials int `json:"service_trials,omitempty" jsonschema:"minimum=0"`
	// earlier campaigns that the search learned from; no figure here includes them
	Earlier []Earlier `json:"earlier,omitempty"`
	// CPU time that others took from the configurations; figures are corrected to its mean; absent if others took
	// none
	Withheld *Withheld `json:"withheld,omitempty"`
	// how the machine's speed varies within seconds; absent if it is unknown or constant
	Speed  *measure.Speed `json:"speed,omitempty"`
	Ending *Ending        `json:"ending,omitempty"` // how the campaign ended; absent in an import
	Time   *Account       `json:"time,omitempty"`   // where the campaign's time went; absent in an import
	// steps of `tuner run`; absent if the campaign was run by itself
	Steps  []Step  `json:"steps,omitempty"`
	Origin *Origin `json:"origin,omitempty"` // everything that is needed to reproduce the result; absent in an import

	// facts of the machine, as `host` of `tuner doctor --format json`
	Machine jsontext.Value `json:"machine,omitempty" jsonschema:"type=object"`
	// file of another program that was imported; values that only a campaign has are then missing,
	// and no estimate has an interval
	Recorded string `json:"recorded,omitempty"`
}

// Parse reads a result.json. path is its name in errors. A file of another format version is
// refused.
func Parse(path string, text []byte) (Result, error) {
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return Result{}, fmt.Errorf("%s is not a result of 'tuner analyze': %w", path, err)
	}
	if r.Format != Format {
		return Result{}, fmt.Errorf("%s: format is %d; this version of tuner reads format %d: run 'tuner analyze' again", path, r.Format, Format)
	}
	return r, nil
}

// Answer is the head of all reports.
type Answer struct {
	State    verdict.State `json:"state" jsonschema:"enum,enum=recorded"` // how certain the answer is; recorded: it rests on figures of another program
	Headline string        `json:"headline"`                              // the state in a sentence
	// probability with which the constraints must hold, as analyze.yaml asks for it
	Confidence float64 `json:"confidence,omitempty" jsonschema:"exclusiveMinimum=0.5,exclusiveMaximum=1"`
	// probability that the best configuration, or the nearest, keeps all constraints; absent if it is
	// unknown
	Probability *float64 `json:"probability,omitempty" jsonschema:"minimum=0,maximum=1"`
	// relative gain that something else may still have, at most with the required probability; absent
	// if it is unknown
	More *float64 `json:"possible_gain,omitempty" jsonschema:"minimum=0"`
	// several models: what each gets and does in the best configuration, or the nearest; absent for one
	// model
	Models []Share `json:"models,omitempty"`
	Lines  []Line  `json:"lines"` // statements of the answer
}

// Served is one of several models on the server.
type Served struct {
	Model    string         `json:"model"`              // name under which it is served
	Load     measure.Load   `json:"load"`               // its traffic at scale 1
	Accuracy *AccuracyLimit `json:"accuracy,omitempty"` // limit that its variants must keep; absent if nothing was compared
}

// Share has the load and the figures of one of several models in a configuration.
type Share struct {
	Model  string       `json:"model"`  // name under which it is served
	Load   measure.Load `json:"load"`   // its traffic at the scale of the answer
	Limits []Chance     `json:"limits"` // its limits, with metrics without its name
	// its figures by metric without its name, in base units
	Values map[measure.Metric]Estimate `json:"values"`
}

// Line is one statement of the answer.
type Line struct {
	Name string `json:"name"` // what the statement is about
	Text string `json:"text"` // the statement, for people
}

// Goal is the goal of the analysis.
type Goal struct {
	Objective   []search.Term       `json:"objective" jsonschema:"minItems=1"` // metrics that the best configuration is best in, with their weights
	Constraints []search.Constraint `json:"constraints"`                       // limits that a configuration must keep
	// limit that variants must keep; absent if nothing was compared
	Accuracy *AccuracyLimit `json:"accuracy,omitempty"`
	// price of the machine per hour, in the currency of the metric cost; absent without one
	Price float64 `json:"price_per_hour,omitempty" jsonschema:"exclusiveMinimum=0"`
}

// AccuracyLimit is the limit that every variant of the model had to keep.
type AccuracyLimit struct {
	Metric  string   `json:"metric"`            // name of the metric, as in accuracy of profile.yaml
	Min     *float64 `json:"min,omitempty"`     // lowest allowed value
	Max     *float64 `json:"max,omitempty"`     // highest allowed value
	Command string   `json:"command,omitempty"` // the user's program that computes the metric
}

// Request is the shape of an input in the measured requests.
type Request struct {
	Input string  `json:"input"` // name of the input
	Shape []int64 `json:"shape"` // sizes, without the batch dimension
	// where the sizes come from: given by the user, an example of tuner's where the model leaves them
	// open, or fixed by the model
	Source analyze.ShapeSource `json:"source" jsonschema:"enum"`
	// why tuner chose an example's sizes; absent for other sources
	Reason string `json:"reason,omitempty"`
}

// Ranking describes how configurations are ranked.
type Ranking struct {
	// what ranks configurations: the score of the objective at one load, or the mean of the three
	// highest throughputs over the loads
	Rank string `json:"rank" jsonschema:"enum=score,enum=top3-mean"`
	// load at which configurations are compared; best: each at its best load
	At string `json:"at" jsonschema:"pattern=^(best|concurrency=[0-9]+|request_rate=[0-9.e+-]+|scale=[0-9.e+-]+)$"`
}

// BestAtLoad is the best configuration at one load, ranked by that load alone.
type BestAtLoad struct {
	Load     measure.Load `json:"load"`                            // the load
	Measured int          `json:"measured" jsonschema:"minimum=0"` // number of configurations that were measured there
	Best     string       `json:"best,omitempty"`                  // name of the best one; absent if none satisfies the constraints
	// figures of the best one there by metric, in base units; absent with it
	Values   map[measure.Metric]Estimate `json:"values,omitempty"`
	TiedWith []string                    `json:"tied_with,omitempty"` // names of configurations that are as good
	Gain     *Estimate                   `json:"gain,omitempty"`      // factor over the default at this load
}

// Front is a Pareto set: no point within the limits is better in one of the metrics without being
// worse in another.
type Front struct {
	Metrics []measure.Metric `json:"metrics" jsonschema:"minItems=2,maxItems=3"` // metrics of the set
	Points  []FrontPoint     `json:"points" jsonschema:"minItems=1"`             // points of the set
}

// FrontPoint is a point of a Pareto set.
type FrontPoint struct {
	Name   string       `json:"name"`                                      // name of the configuration
	Load   measure.Load `json:"load"`                                      // load of the point
	Values []float64    `json:"values" jsonschema:"minItems=2,maxItems=3"` // values in the order of the set's metrics
}

// Configuration is a configuration with all its measurements.
type Configuration struct {
	Name      string `json:"name"`                                  // name of the configuration
	Rank      int    `json:"rank,omitempty" jsonschema:"minimum=1"` // rank from 1; absent if nothing was measured
	Default   bool   `json:"default"`                               // it is the default configuration
	Satisfies bool   `json:"satisfies"`                             // it satisfies the constraints at its best load
	Confirmed bool   `json:"confirmed"`                             // it was measured again on fresh launches at its best load
	// of the best one, names of the first 20 configurations that are as good; of each of these, the
	// name of the best one
	TiedWith []string      `json:"tied_with,omitempty"`
	Gain     *Estimate     `json:"gain,omitempty"`      // factor over the default, each at its best load
	BestLoad *measure.Load `json:"best_load,omitempty"` // load of the point that ranks it
	Setup    Setup         `json:"setup"`               // the server's setup; of several models the sum of instances, and what they have in common
	// several models: the configuration of each, in the order of the profile; absent for one model
	Models []Configured `json:"models,omitempty"`
	// values of the server's option --host-policy, which give each of several models cores of its own;
	// absent where they share all cores
	HostPolicies []string         `json:"host_policies,omitempty"`
	Settings     search.Candidate `json:"settings"`         // knobs that differ from the default; empty for the default
	Memory       *Memory          `json:"memory,omitempty"` // memory of the server's process, the same for all points; absent if it is unknown
	Points       []Point          `json:"points"`           // one for each load, ascending
	Config       string           `json:"config"`           // text of config.pbtxt; of several models all of them
}

// Configured is the configuration of one of several models.
type Configured struct {
	Model  string `json:"model"`  // name under which it is served
	Setup  Setup  `json:"setup"`  // its setup
	Config string `json:"config"` // text of its config.pbtxt
}

// Memory is the memory of the server's process with a configuration. It is the same for every load.
type Memory struct {
	Estimate
	// how the memory is known: measured on a process that had executed its largest batch and no
	// larger one, or derived from other batches or other numbers of instances
	Basis footprint.Basis `json:"basis" jsonschema:"enum"`
}

// Setup is the server's setup with a configuration. Unknown numbers are absent.
type Setup struct {
	Provider       string   `json:"execution_provider"`                                // execution provider, such as cpu
	Runtime        string   `json:"runtime"`                                           // ONNX Runtime build, as flavour@version
	Precision      string   `json:"precision"`                                         // precision of the model, such as int8
	Instances      *int     `json:"instance_count,omitempty" jsonschema:"minimum=1"`   // number of instances of the model
	IntraOpThreads *int     `json:"intra_op_threads,omitempty" jsonschema:"minimum=0"` // threads of each instance; 0: one for each core
	MaxBatchSize   *int     `json:"max_batch_size,omitempty" jsonschema:"minimum=0"`   // largest batch; 0: no batching
	QueueDelay     *float64 `json:"max_queue_delay,omitempty" jsonschema:"minimum=0"`  // longest time that a request waits for a batch, in seconds
}

// Point is a configuration under one load.
type Point struct {
	// name of the server of the figures; absent if only the bundled engine was measured
	Server    string       `json:"server,omitempty"`
	Load      measure.Load `json:"load"`      // the load
	Confirmed bool         `json:"confirmed"` // the figures are those of fresh launches
	Sample
	// figures of the search, which are the search's server's; absent unless the point was confirmed
	Searched *Sample `json:"searched,omitempty"`
}

// Sample has the figures of a configuration under a load. Windows, launches, requests and errors
// are absent if another program measured.
type Sample struct {
	Satisfies bool     `json:"satisfies"`         // the figures satisfy each constraint, and are likely to satisfy all at once
	Misses    []string `json:"misses,omitempty"`  // constraints that are missed, and by how much, in words
	Chances   []Chance `json:"chances,omitempty"` // probability of each constraint to hold
	// figures by metric, in base units; what is unknown is absent
	Values   map[measure.Metric]Estimate `json:"values"`
	Windows  *int                        `json:"windows,omitempty" jsonschema:"minimum=1"`  // number of windows
	Launches *int                        `json:"launches,omitempty" jsonschema:"minimum=0"` // number of engine launches
	Requests *int                        `json:"requests,omitempty" jsonschema:"minimum=0"` // number of requests that were answered without error
	Errors   *int                        `json:"errors,omitempty" jsonschema:"minimum=0"`   // number of failed requests
	// longest launch until the model was loaded, in seconds; absent if the engine already ran
	Launch    float64 `json:"launch_time,omitempty" jsonschema:"minimum=0"`
	MeanBatch float64 `json:"mean_batch,omitempty" jsonschema:"minimum=0"` // mean size of the batches that the server executed
	// mean time of these batches in an instance, in seconds
	BatchTime float64             `json:"batch_time,omitempty" jsonschema:"minimum=0"`
	Batches   []measure.BatchTime `json:"batches,omitempty"` // the same by size
	Flags     []measure.Flag      `json:"flags,omitempty"`   // reasons to trust the figures less
	GPUs      []measure.GPUWindow `json:"gpus,omitempty"`    // what each GPU did
}

// Chance is the probability that a constraint holds.
type Chance struct {
	Constraint  search.Constraint `json:"constraint"`                                   // the constraint
	Probability float64           `json:"probability" jsonschema:"minimum=0,maximum=1"` // probability, 0 to 1, that it holds
}

// Estimate is a figure with its 95 % interval.
type Estimate struct {
	Value float64 `json:"value"` // the figure, with six significant digits
	Lo    float64 `json:"lo"`    // lower end of its 95 % interval; the figure itself if no interval is known
	Hi    float64 `json:"hi"`    // upper end of its 95 % interval; the figure itself if no interval is known
}

// Measured converts the estimate to package measure's type.
func (e Estimate) Measured() measure.Estimate {
	return measure.Estimate{Value: e.Value, Lo: e.Lo, Hi: e.Hi}
}

// Failure is a trial that failed.
type Failure struct {
	Name   string        `json:"name"`                    // name of the configuration
	Load   measure.Load  `json:"load"`                    // load of the trial
	Stage  measure.Stage `json:"stage" jsonschema:"enum"` // part of the trial that failed
	Reason string        `json:"reason"`                  // why it failed
}

// Fold counts candidates that were left out for one reason.
type Fold struct {
	Reason string `json:"reason"`                       // why they were left out
	Count  int    `json:"count" jsonschema:"minimum=0"` // number of candidates
	Into   string `json:"into,omitempty"`               // settings of the candidate that stands for them, or for the first of them
}

// Earlier is an earlier campaign that was reused.
type Earlier struct {
	From    string    `json:"from"`                          // output folder of the campaign
	Created time.Time `json:"created"`                       // when the campaign began
	Same    bool      `json:"same_machine"`                  // it ran on this machine, with the same ONNX Runtime and protocol
	Trials  int       `json:"trials" jsonschema:"minimum=0"` // number of its trials that were reused
}

// Withheld is the share of the CPU time that others took, and its effect on throughput.
type Withheld struct {
	Mean      float64 `json:"mean" jsonschema:"minimum=0,maximum=1"`    // mean share of the CPU time, 0 to 1
	Most      float64 `json:"most" jsonschema:"minimum=0,maximum=1"`    // share in the worst window
	Steal     float64 `json:"steal" jsonschema:"minimum=0,maximum=1"`   // mean share that the hypervisor took in the windows that lost something
	Foreign   float64 `json:"foreign" jsonschema:"minimum=0,maximum=1"` // mean share that other processes took in the same windows
	Slope     float64 `json:"slope"`                                    // slope of the logarithm of throughput over the share
	Deviation float64 `json:"deviation" jsonschema:"minimum=0"`         // standard error of the slope
	// largest share of a window in which other programs computed on a GPU of the engine; absent for none
	GPU float64 `json:"gpu,omitempty" jsonschema:"minimum=0,maximum=1"`
}

// Ending describes how the campaign ended.
type Ending struct {
	Interrupted bool   `json:"interrupted"` // the user interrupted the campaign
	Reason      string `json:"reason"`      // why it ended
	// decision and remarks of the search, in sentences; absent unless each configuration is compared
	// at its best load, and if the best one is not reported
	Statement []string `json:"statement,omitempty"`
	// remarks of the search alone, in sentences; absent unless each configuration is compared at its best load
	Notes []string `json:"notes,omitempty"`
}

// Account splits the campaign's time by activity.
type Account struct {
	Elapsed          float64 `json:"elapsed" jsonschema:"minimum=0"`          // whole time of the campaign; the others add up to it
	Windows          float64 `json:"windows" jsonschema:"minimum=0"`          // time of measurement windows
	Launches         float64 `json:"launches" jsonschema:"minimum=0"`         // time of engine launches
	Reconfigurations float64 `json:"reconfigurations" jsonschema:"minimum=0"` // time in which running engines loaded another configuration
	WarmUps          float64 `json:"warm_ups" jsonschema:"minimum=0"`         // time of warm-ups, and of waiting for the last answers
	Decisions        float64 `json:"decisions"`                               // what remains: the strategy's time
}

// Origin has everything that is needed to reproduce the result.
type Origin struct {
	Tool          string    `json:"tool"`            // name and version of the program
	Created       time.Time `json:"created"`         // when the campaign began
	Profile       string    `json:"profile"`         // path of profile.yaml
	ProfileSHA256 string    `json:"profile_sha256"`  // SHA-256 of its text
	Seed          uint64    `json:"seed"`            // seed of all random choices
	Flavour       string    `json:"runtime"`         // flavour of the default's ONNX Runtime build
	Version       string    `json:"runtime_version"` // version of the default's ONNX Runtime build
	// ONNX Runtime builds that were measured, as flavour@version; with another server, the build that
	// compared the variants
	Runtimes    []string `json:"runtimes"`
	Fingerprint string   `json:"machine_fingerprint"` // fingerprint of the machine: figures of different fingerprints do not compare
	// machines of the campaign's runs and the part of each that was used; a machine that was started
	// again counts twice; absent in older journals
	Placements []hostinfo.Placement `json:"placements,omitempty"`
	Models     []Model              `json:"models"` // model files
	// libraries with operators of the model; absent without any
	Operators []addon.File `json:"operators,omitempty"`
	// library with an execution provider, which was named plugin; absent without one
	ProviderLibrary *addon.File `json:"provider_library,omitempty"`

	Server *journal.ServerInfo `json:"server,omitempty"` // measured server; absent if it is the bundled engine
	Finals *journal.ServerInfo `json:"finals,omitempty"` // server of the finals; absent if it is the measured one
}

// Model is the model file of one precision.
type Model struct {
	Model     string `json:"model,omitempty"`              // of several models the one that it is a file of; absent for one model
	Precision string `json:"precision"`                    // precision of the file, such as int8
	Path      string `json:"path"`                         // path of the file
	SHA256    string `json:"sha256"`                       // SHA-256 of the file with its external data
	Bytes     int64  `json:"bytes" jsonschema:"minimum=0"` // size of the file with its external data
}

// Step is a step of `tuner run`.
type Step struct {
	Step  steps.Name  `json:"step" jsonschema:"enum"`  // name of the step
	State steps.State `json:"state" jsonschema:"enum"` // result of the step
	Text  string      `json:"text"`                    // what was done, or why it was not, for people
}

// Variant is the model in one precision, with its accuracy in each place that was tried.
type Variant struct {
	Model     string             `json:"model,omitempty"`                            // of several models the one that it is a variant of; absent for one model
	Precision string             `json:"precision"`                                  // name of the precision
	Own       bool               `json:"own"`                                        // the file is the user's own, not one that tuner made
	Path      string             `json:"path,omitempty"`                             // path of the file; absent if it could not be made
	SHA256    string             `json:"sha256,omitempty"`                           // SHA-256 of the file with its external data
	Bytes     int64              `json:"bytes,omitempty" jsonschema:"minimum=0"`     // size of the file with its external data
	Converted int                `json:"converted,omitempty" jsonschema:"minimum=0"` // number of operators in the precision
	Kept      []journal.KeptNode `json:"kept,omitempty"`                             // operators that stayed in fp32 to keep the limit
	Notes     []string           `json:"notes,omitempty"`                            // remarks on the conversion, in sentences
	// data that outputs were compared on; synthetic: random
	Data string `json:"data,omitempty" jsonschema:"enum=user,enum=synthetic"`
	// comparisons with the original by execution provider; if there are several builds, by provider
	// and build: cpu in openvino@1.24.1
	Accuracy map[string]accuracy.Report `json:"accuracy,omitempty"`
	Judges   []Judge                    `json:"judges,omitempty"`   // ONNX Runtime builds in which it was compared
	Rejected []Rejection                `json:"rejected,omitempty"` // why it was not measured
}

// Judge names the ONNX Runtime build in which a variant was compared on an execution provider.
type Judge struct {
	Provider string `json:"execution_provider"` // execution provider of the comparison
	Runtime  string `json:"runtime"`            // ONNX Runtime build, as flavour@version
}

// Rejection has the reason why a variant was not measured. Without a provider it applies to all
// providers, without a runtime to all builds.
type Rejection struct {
	Provider string `json:"execution_provider,omitempty"` // execution provider; absent: all
	Runtime  string `json:"runtime,omitempty"`            // ONNX Runtime build; absent: all, or the only one
	Reason   string `json:"reason"`                       // why it was not measured there
}
