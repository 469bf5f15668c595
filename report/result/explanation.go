package result

import (
	"tuner/analyze"
	"tuner/measure"
	"tuner/search"
)

// Explanation explains why the best configuration is the best. Changes are relative: -0.12 is 12 %
// worse.
type Explanation struct {
	Subjects []Subject        `json:"subjects" jsonschema:"minItems=1"` // the best, then the configurations that it is compared with
	Knobs    []Knob           `json:"knobs"`
	Barred   *Barred          `json:"barred,omitempty"`
	Untried  Untried          `json:"untried"`
	Dropped  []measure.Metric `json:"dropped,omitempty"` // metrics whose predictions turned out wrong
}

// Subject is a configuration that is explained.
type Subject struct {
	Name         string             `json:"name"`
	Load         measure.Load       `json:"load"`
	Change       *Estimate          `json:"change,omitempty"` // of the objective, against the best
	Bottleneck   analyze.Bottleneck `json:"bottleneck" jsonschema:"enum"`
	Breakdown    *Breakdown         `json:"breakdown,omitempty"`
	Higher       *Higher            `json:"higher,omitempty"`
	HighestLoad  bool               `json:"highest_load"` // the profile has no higher load
	Predictions  []Prediction       `json:"predictions,omitempty"`
	ServiceCurve *ServiceCurve      `json:"service_curve,omitempty"`
}

// Breakdown splits the mean latency of a request into its parts, and shows how busy the machine
// was.
type Breakdown struct {
	Latency       float64 `json:"latency" jsonschema:"minimum=0"`
	Queue         float64 `json:"queue" jsonschema:"minimum=0"`
	ComputeInput  float64 `json:"compute_input" jsonschema:"minimum=0"`
	ComputeInfer  float64 `json:"compute_infer" jsonschema:"minimum=0"`
	ComputeOutput float64 `json:"compute_output" jsonschema:"minimum=0"`
	Outside       float64 `json:"outside" jsonschema:"minimum=0"` // client, wire and front end
	Instances     int     `json:"instances" jsonschema:"minimum=1"`
	Busy          float64 `json:"instances_busy" jsonschema:"minimum=0"` // mean number of instances at work
	MeanBatch     float64 `json:"mean_batch,omitempty" jsonschema:"minimum=0"`
	Batches       []Batch `json:"batches,omitempty"`
	EngineCPU     float64 `json:"engine_cpu,omitempty" jsonschema:"minimum=0"` // cores
	ClientCPU     float64 `json:"client_cpu,omitempty" jsonschema:"minimum=0"` // cores
	Foreign       float64 `json:"foreign" jsonschema:"minimum=0"`              // share of the CPU time of other processes
	Steal         float64 `json:"steal" jsonschema:"minimum=0"`                // share of the CPU time that the hypervisor took
	Throttled     float64 `json:"throttled,omitempty" jsonschema:"minimum=0"`  // share of the CPU time that a quota took
	GPU           float64 `json:"gpu,omitempty" jsonschema:"minimum=0"`        // share of the time in which the GPU computed
}

// Batch is a batch size, with the share of its executions.
type Batch struct {
	Size  int     `json:"size" jsonschema:"minimum=1"`
	Share float64 `json:"share" jsonschema:"minimum=0,maximum=1"` // of the executions
}

// Higher is the next higher load that was measured.
type Higher struct {
	Load   measure.Load `json:"load"`
	Change float64      `json:"change"` // of the objective
	Misses []string     `json:"misses,omitempty"`
}

// Prediction compares the search's prediction of a metric with its measurement.
type Prediction struct {
	Metric    measure.Metric `json:"metric"`
	Simulated *float64       `json:"simulated,omitempty"` // by the queue simulation, from service times
	Believed  *Estimate      `json:"believed,omitempty"`  // before the configuration was measured
	Measured  Estimate       `json:"measured"`
}

// ServiceCurve has the time of one execution by batch size.
type ServiceCurve struct {
	Sizes    []int     `json:"sizes" jsonschema:"items.minimum=1"`
	Alone    []float64 `json:"alone" jsonschema:"items.minimum=0"`             // with one instance at work
	Crowded  []float64 `json:"crowded,omitempty" jsonschema:"items.minimum=0"` // with all instances at work
	Overhead float64   `json:"overhead"`                                       // of a request outside of queue and instance
}

// Knob compares the values of a knob with the chosen one.
type Knob struct {
	Knob   string       `json:"knob"`
	Chosen search.Value `json:"chosen"`
	Others []Effect     `json:"others"`
}

// Effect is the effect of another value of a knob.
type Effect struct {
	Value  search.Value `json:"value"`
	Basis  search.Basis `json:"basis" jsonschema:"enum"`
	Change *Estimate    `json:"change,omitempty"` // of the objective
	Misses []string     `json:"misses,omitempty"`
}

// Barred is a configuration that would be better without the limit on memory.
type Barred struct {
	Name   string       `json:"name"`
	Load   measure.Load `json:"load"`
	Change float64      `json:"change"` // of the objective
	Misses []string     `json:"misses"`
}

// Untried counts the candidates that were not measured.
type Untried struct {
	Candidates   int      `json:"candidates" jsonschema:"minimum=0"` // of the space, without the default
	Measured     int      `json:"measured" jsonschema:"minimum=0"`   // with a trial, failed ones included
	Predicted    int      `json:"predicted" jsonschema:"minimum=0"`  // by their service times, without a window
	Unreached    int      `json:"unreached" jsonschema:"minimum=0"`  // the campaign ended before them
	Skipped      []Fold   `json:"skipped"`                           // their engine processes do not serve, or cannot matter
	PossibleGain *float64 `json:"possible_gain,omitempty"`           // relative gain that one of them may have
}
