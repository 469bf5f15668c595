// Package result has the types of result.json, the machine-readable result of `tuner analyze`.
//
// Package report/json writes the file from an analyzed campaign. Package export reads it, and so
// may other programs: docs/reference/result.schema.json is the JSON Schema that a test of this
// package generates from these types. The package holds data. It ranks nothing, rounds nothing and
// opens no file.
//
// Times are seconds, sizes are bytes, and rates are per second, unless a comment says otherwise.
package result

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"tuner/analyze"
	"tuner/measure"
	"tuner/model/precision/accuracy"
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
	Format  int    `json:"format" jsonschema:"const=1"` // version of the file
	Status  Status `json:"status" jsonschema:"enum"`
	Summary string `json:"summary"` // the answer in a few sentences
	Answer  Answer `json:"answer"`
	Model   string `json:"model"`
	Best    string `json:"best,omitempty"` // name of the best configuration, if one satisfies the constraints
	// name of the configuration that misses the constraints least, if none satisfies them
	Nearest string `json:"nearest,omitempty"`
	Goal    Goal   `json:"goal"`

	Requests       []Request       `json:"requests,omitempty"` // shapes of the inputs in the measured requests
	RankedBy       Ranking         `json:"ranked_by"`
	Configurations []Configuration `json:"configurations"` // best first
	Loads          []BestAtLoad    `json:"loads"`          // the best configuration at each load
	Pareto         []Front         `json:"pareto"`         // of three metrics together, then of each two
	Explanation    *Explanation    `json:"explanation,omitempty"`
	FirstStage     string          `json:"first_stage,omitempty"` // name of the best configuration with the default's instances and batching
	Variants       []Variant       `json:"variants"`
	Failures       []Failure       `json:"failures"`
	LeftOut        []Fold          `json:"left_out"` // candidates that were never measured

	Trials        int       `json:"trials" jsonschema:"minimum=0"`            // trials of the campaign, failed ones included
	Windows       *int      `json:"windows,omitempty" jsonschema:"minimum=0"` // measurement windows of all trials
	ServiceTrials int       `json:"service_trials,omitempty" jsonschema:"minimum=0"`
	Earlier       []Earlier `json:"earlier,omitempty"`  // campaigns whose journals were reused
	Withheld      *Withheld `json:"withheld,omitempty"` // absent if others took no CPU time
	Ending        *Ending   `json:"ending,omitempty"`
	Time          *Account  `json:"time,omitempty"`
	Steps         []Step    `json:"steps,omitempty"` // of `tuner run`
	Origin        *Origin   `json:"origin,omitempty"`

	Machine jsontext.Value `json:"machine,omitempty" jsonschema:"type=object"` // facts of the machine, as the journal has them
	// file of another program; values that only a campaign has are then missing
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
	State       verdict.State `json:"state" jsonschema:"enum,enum=recorded"`
	Headline    string        `json:"headline"`                                                                  // the state in a sentence
	Confidence  float64       `json:"confidence,omitempty" jsonschema:"exclusiveMinimum=0.5,exclusiveMaximum=1"` // asked for
	Probability *float64      `json:"probability,omitempty" jsonschema:"minimum=0,maximum=1"`                    // that the best, or the nearest, keeps all constraints
	More        *float64      `json:"possible_gain,omitempty" jsonschema:"minimum=0"`                            // relative gain that something else may still have
	Lines       []Line        `json:"lines"`
}

// Line is one statement of the answer.
type Line struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Goal is the goal of the analysis.
type Goal struct {
	Objective   []search.Term       `json:"objective" jsonschema:"minItems=1"`
	Constraints []search.Constraint `json:"constraints"`
	Accuracy    *AccuracyLimit      `json:"accuracy,omitempty"`
	Price       float64             `json:"price_per_hour,omitempty" jsonschema:"exclusiveMinimum=0"` // of the machine, in the user's currency
}

// AccuracyLimit is the limit that every variant of the model had to keep.
type AccuracyLimit struct {
	Metric  string   `json:"metric"`
	Min     *float64 `json:"min,omitempty"`
	Max     *float64 `json:"max,omitempty"`
	Command string   `json:"command,omitempty"` // the user's program that computes the metric
}

// Request is the shape of an input in the measured requests.
type Request struct {
	Input  string              `json:"input"`
	Shape  []int64             `json:"shape"`
	Source analyze.ShapeSource `json:"source" jsonschema:"enum"`
}

// Ranking describes how configurations are ranked.
type Ranking struct {
	Rank string `json:"rank" jsonschema:"enum=score,enum=top3-mean"`
	At   string `json:"at" jsonschema:"pattern=^(best|concurrency=[0-9]+|request_rate=[0-9.e+-]+)$"` // best: each configuration at its best load; otherwise the load of all
}

// BestAtLoad is the best configuration at one load, ranked by that load alone.
type BestAtLoad struct {
	Load     measure.Load `json:"load"`
	Measured int          `json:"measured" jsonschema:"minimum=0"` // configurations that were measured there
	Best     string       `json:"best,omitempty"`
	TiedWith []string     `json:"tied_with,omitempty"`
	Gain     *Estimate    `json:"gain,omitempty"` // over the default at this load
}

// Front is a Pareto set: no point within the limits is better in one of the metrics without being
// worse in another.
type Front struct {
	Metrics []measure.Metric `json:"metrics" jsonschema:"minItems=2,maxItems=3"`
	Points  []FrontPoint     `json:"points" jsonschema:"minItems=1"`
}

// FrontPoint is a point of a Pareto set.
type FrontPoint struct {
	Name   string       `json:"name"`
	Load   measure.Load `json:"load"`
	Values []float64    `json:"values" jsonschema:"minItems=2,maxItems=3"` // in the order of the front's metrics
}

// Configuration is a configuration with all its measurements.
type Configuration struct {
	Name      string           `json:"name"`
	Rank      int              `json:"rank,omitempty" jsonschema:"minimum=1"`
	Default   bool             `json:"default"`
	Satisfies bool             `json:"satisfies"`           // the constraints, at its best load
	Confirmed bool             `json:"confirmed"`           // measured again on fresh launches, at its best load
	TiedWith  []string         `json:"tied_with,omitempty"` // names of configurations that are as good
	Gain      *Estimate        `json:"gain,omitempty"`      // over the default, each at its best load
	BestLoad  *measure.Load    `json:"best_load,omitempty"`
	Setup     Setup            `json:"setup"`
	Settings  search.Candidate `json:"settings"` // knobs that differ from the default
	Memory    *Memory          `json:"memory,omitempty"`
	Points    []Point          `json:"points"` // one for each load, ascending
	Config    string           `json:"config"` // text of config.pbtxt
}

// Memory is the memory of the server's process with a configuration. It is the same for every load.
type Memory struct {
	Estimate
	Basis footprint.Basis `json:"basis" jsonschema:"enum"`
}

// Setup is the server's setup with a configuration. Unknown numbers are absent.
type Setup struct {
	Provider       string  `json:"execution_provider"`
	Runtime        string  `json:"runtime"` // ONNX Runtime build, flavour@version
	Precision      string  `json:"precision"`
	Instances      *int    `json:"instance_count,omitempty" jsonschema:"minimum=1"`
	IntraOpThreads *int    `json:"intra_op_threads,omitempty" jsonschema:"minimum=0"` // of each instance; 0: one for each core
	MaxBatchSize   *int    `json:"max_batch_size,omitempty" jsonschema:"minimum=0"`   // 0: no batching
	QueueDelay     float64 `json:"max_queue_delay" jsonschema:"minimum=0"`
}

// Point is a configuration under one load.
type Point struct {
	Server    string       `json:"server,omitempty"` // set if another server than the bundled engine was measured
	Load      measure.Load `json:"load"`
	Confirmed bool         `json:"confirmed"` // the figures are those of fresh launches
	Sample
	Searched *Sample `json:"searched,omitempty"` // figures of the search, if the point was confirmed
}

// Sample has the figures of a configuration under a load. Windows, launches, requests and errors
// are absent if another program measured.
type Sample struct {
	Satisfies bool                        `json:"satisfies"`
	Misses    []string                    `json:"misses,omitempty"` // constraints that are missed, in words
	Chances   []Chance                    `json:"chances,omitempty"`
	Values    map[measure.Metric]Estimate `json:"values"`
	Windows   *int                        `json:"windows,omitempty" jsonschema:"minimum=1"`
	Launches  *int                        `json:"launches,omitempty" jsonschema:"minimum=0"`
	Requests  *int                        `json:"requests,omitempty" jsonschema:"minimum=0"`
	Errors    *int                        `json:"errors,omitempty" jsonschema:"minimum=0"`
	Launch    float64                     `json:"launch_time,omitempty" jsonschema:"minimum=0"` // of the engine with the model
	MeanBatch float64                     `json:"mean_batch,omitempty" jsonschema:"minimum=0"`
	Flags     []measure.Flag              `json:"flags,omitempty"` // reasons to trust the figures less
	GPUs      []measure.GPUWindow         `json:"gpus,omitempty"`
}

// Chance is the probability that a constraint holds.
type Chance struct {
	Constraint  search.Constraint `json:"constraint"`
	Probability float64           `json:"probability" jsonschema:"minimum=0,maximum=1"`
}

// Estimate is a figure with its 95 % interval.
type Estimate struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
}

// Measured converts the estimate to package measure's type.
func (e Estimate) Measured() measure.Estimate {
	return measure.Estimate{Value: e.Value, Lo: e.Lo, Hi: e.Hi}
}

// Failure is a trial that failed.
type Failure struct {
	Name   string        `json:"name"` // of the configuration
	Load   measure.Load  `json:"load"`
	Stage  measure.Stage `json:"stage" jsonschema:"enum"`
	Reason string        `json:"reason"`
}

// Fold counts candidates that were left out for one reason.
type Fold struct {
	Reason string `json:"reason"`
	Count  int    `json:"count" jsonschema:"minimum=0"`
	Into   string `json:"into,omitempty"` // the candidate that stands for them
}

// Earlier is an earlier campaign that was reused.
type Earlier struct {
	From    string    `json:"from"` // output folder
	Created time.Time `json:"created"`
	Same    bool      `json:"same_machine"` // also the same ONNX Runtime and protocol
	Trials  int       `json:"trials" jsonschema:"minimum=0"`
}

// Withheld is the share of the CPU time that others took, and its effect on throughput.
type Withheld struct {
	Mean      float64 `json:"mean" jsonschema:"minimum=0,maximum=1"`
	Most      float64 `json:"most" jsonschema:"minimum=0,maximum=1"`    // in the worst window
	Steal     float64 `json:"steal" jsonschema:"minimum=0,maximum=1"`   // by the hypervisor
	Foreign   float64 `json:"foreign" jsonschema:"minimum=0,maximum=1"` // by other processes
	Slope     float64 `json:"slope"`                                    // of log throughput over the share
	Deviation float64 `json:"deviation" jsonschema:"minimum=0"`         // standard error of the slope
}

// Ending describes how the campaign ended.
type Ending struct {
	Interrupted bool     `json:"interrupted"`
	Reason      string   `json:"reason"`
	Statement   []string `json:"statement,omitempty"` // of the search strategy
	Notes       []string `json:"notes,omitempty"`
}

// Account splits the campaign's time by activity.
type Account struct {
	Elapsed          float64 `json:"elapsed" jsonschema:"minimum=0"`
	Windows          float64 `json:"windows" jsonschema:"minimum=0"`
	Launches         float64 `json:"launches" jsonschema:"minimum=0"`
	Reconfigurations float64 `json:"reconfigurations" jsonschema:"minimum=0"`
	WarmUps          float64 `json:"warm_ups" jsonschema:"minimum=0"`
	Decisions        float64 `json:"decisions"` // what remains: the strategy's time
}

// Origin has everything that is needed to reproduce the result.
type Origin struct {
	Tool          string    `json:"tool"` // version of tuner
	Created       time.Time `json:"created"`
	Profile       string    `json:"profile"` // path of profile.yaml
	ProfileSHA256 string    `json:"profile_sha256"`
	Seed          uint64    `json:"seed"`
	Flavour       string    `json:"runtime"` // of the default's ONNX Runtime build
	Version       string    `json:"runtime_version"`
	Runtimes      []string  `json:"runtimes"` // every build that was measured, flavour@version
	Fingerprint   string    `json:"machine_fingerprint"`
	Models        []Model   `json:"models"`

	Server *journal.ServerInfo `json:"server,omitempty"` // absent: the bundled engine
	Finals *journal.ServerInfo `json:"finals,omitempty"` // server of the finals; absent: the same
}

// Model is the model file of one precision.
type Model struct {
	Precision string `json:"precision"`
	Path      string `json:"path"`
	SHA256    string `json:"sha256"`
	Bytes     int64  `json:"bytes" jsonschema:"minimum=0"`
}

// Step is a step of `tuner run`.
type Step struct {
	Step  steps.Name  `json:"step" jsonschema:"enum"`
	State steps.State `json:"state" jsonschema:"enum"`
	Text  string      `json:"text"`
}

// Variant is the model in one precision, with its accuracy in each place that was tried.
type Variant struct {
	Precision string             `json:"precision"`
	Own       bool               `json:"own"` // the user's file, not one that tuner made
	Path      string             `json:"path,omitempty"`
	SHA256    string             `json:"sha256,omitempty"`
	Bytes     int64              `json:"bytes,omitempty" jsonschema:"minimum=0"`
	Converted int                `json:"converted,omitempty" jsonschema:"minimum=0"` // operators in the precision
	Kept      []journal.KeptNode `json:"kept,omitempty"`                             // operators that stayed in fp32
	Notes     []string           `json:"notes,omitempty"`
	Data      string             `json:"data,omitempty" jsonschema:"enum=user,enum=synthetic"` // that outputs were compared on
	// by execution provider, with @ and the build if there are several
	Accuracy map[string]accuracy.Report `json:"accuracy,omitempty"`
	Judges   []Judge                    `json:"judges,omitempty"`
	Rejected []Rejection                `json:"rejected,omitempty"`
}

// Judge names the ONNX Runtime build in which a variant was compared on an execution provider.
type Judge struct {
	Provider string `json:"execution_provider"`
	Runtime  string `json:"runtime"`
}

// Rejection has the reason why a variant was not measured. Without a provider it applies to all
// providers, without a runtime to all builds.
type Rejection struct {
	Provider string `json:"execution_provider,omitempty"`
	Runtime  string `json:"runtime,omitempty"`
	Reason   string `json:"reason"`
}
