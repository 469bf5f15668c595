package result

import (
	"tuner/analyze/bottleneck"
	"tuner/measure"
	"tuner/search"
)

// Explanation explains why the best configuration is the best. Changes are relative: -0.12 is 12 %
// worse.
type Explanation struct {
	// the best configuration or the nearest, the second best, those that were confirmed beside it,
	// and the default, by rank
	Subjects []Subject `json:"subjects" jsonschema:"minItems=1"`
	Knobs    []Knob    `json:"knobs"` // knobs of the best configuration, the one that matters most first
	// the best of what only the limit on memory keeps out; absent unless it is better than the best
	Barred  *Barred          `json:"barred,omitempty"`
	Untried Untried          `json:"untried"`           // candidates that were not measured
	Dropped []measure.Metric `json:"dropped,omitempty"` // metrics whose predictions turned out wrong
}

// Subject is a configuration that is explained.
type Subject struct {
	Name   string       `json:"name"`             // name of the configuration
	Load   measure.Load `json:"load"`             // its best load
	Change *Estimate    `json:"change,omitempty"` // relative change of the objective against the first subject, positive if better
	// what limits the configuration at this load
	Bottleneck bottleneck.Kind `json:"bottleneck" jsonschema:"enum"`
	// where the time goes; absent without the server's statistics
	Breakdown *Breakdown `json:"breakdown,omitempty"`
	// of a pipeline: what its stages do, in the profile's order
	Stages []Stage `json:"stages,omitempty"`
	// of a pipeline: the stage whose instances are busy for the largest share of the time
	BottleneckStage string  `json:"bottleneck_stage,omitempty"`
	Higher          *Higher `json:"higher,omitempty"` // next higher load that was measured
	HighestLoad     bool    `json:"highest_load"`     // its load is the highest of the profile
	// predictions of the search beside what was measured
	Predictions []Prediction `json:"predictions,omitempty"`
	// how long a batch takes in its engine process
	ServiceCurve *ServiceCurve `json:"service_curve,omitempty"`
}

// Stage has the figures of one stage of a pipeline, under the pipeline's load.
type Stage struct {
	Model     string  `json:"model"`                                       // name under which the stage is served
	Instances int     `json:"instances" jsonschema:"minimum=1"`            // number of instances
	Busy      float64 `json:"instances_busy" jsonschema:"minimum=0"`       // mean number of instances at work
	Calls     float64 `json:"calls" jsonschema:"minimum=0"`                // requests to the stage for each of the pipeline's
	Queue     float64 `json:"queue" jsonschema:"minimum=0"`                // time in its queue, in seconds per request to it
	Compute   float64 `json:"compute" jsonschema:"minimum=0"`              // time in an instance, in seconds per request to it
	MeanBatch float64 `json:"mean_batch,omitempty" jsonschema:"minimum=0"` // mean size of the executed batches
}

// Breakdown splits the mean latency of a request into its parts, and shows how busy the machine
// was.
type Breakdown struct {
	Latency       float64 `json:"latency" jsonschema:"minimum=0"`              // mean latency, in seconds per request
	Queue         float64 `json:"queue" jsonschema:"minimum=0"`                // time in the queue, in seconds per request
	ComputeInput  float64 `json:"compute_input" jsonschema:"minimum=0"`        // time in which inputs are gathered, in seconds per request
	ComputeInfer  float64 `json:"compute_infer" jsonschema:"minimum=0"`        // time in which the model computes, in seconds per request
	ComputeOutput float64 `json:"compute_output" jsonschema:"minimum=0"`       // time in which outputs are handed out, in seconds per request
	Outside       float64 `json:"outside" jsonschema:"minimum=0"`              // time in client, wire and front end, in seconds per request
	Instances     int     `json:"instances" jsonschema:"minimum=1"`            // number of instances
	Busy          float64 `json:"instances_busy" jsonschema:"minimum=0"`       // mean number of instances at work
	MeanBatch     float64 `json:"mean_batch,omitempty" jsonschema:"minimum=0"` // mean size of the executed batches
	Batches       []Batch `json:"batches,omitempty"`                           // executions by batch size
	EngineCPU     float64 `json:"engine_cpu,omitempty" jsonschema:"minimum=0"` // CPU of the engine, in cores
	ClientCPU     float64 `json:"client_cpu,omitempty" jsonschema:"minimum=0"` // CPU of the load generator, in cores
	Foreign       float64 `json:"foreign" jsonschema:"minimum=0"`              // share of the CPU time that other processes took
	Steal         float64 `json:"steal" jsonschema:"minimum=0"`                // share of the CPU time that the hypervisor took
	Throttled     float64 `json:"throttled,omitempty" jsonschema:"minimum=0"`  // share of the CPU time that a quota took
	GPU           float64 `json:"gpu,omitempty" jsonschema:"minimum=0"`        // share of the time in which the GPU computed
}

// Batch is a batch size, with the share of its executions.
type Batch struct {
	Size  int     `json:"size" jsonschema:"minimum=1"`            // inferences in a batch
	Share float64 `json:"share" jsonschema:"minimum=0,maximum=1"` // share of the executions, 0 to 1
}

// Higher is the next higher load that was measured.
type Higher struct {
	Load   measure.Load `json:"load"`             // the load
	Change float64      `json:"change"`           // relative change of the objective, positive if better
	Misses []string     `json:"misses,omitempty"` // constraints that are missed there, and by how much
}

// Prediction compares the search's prediction of a metric with its measurement.
type Prediction struct {
	Metric    measure.Metric `json:"metric"`              // the metric
	Simulated *float64       `json:"simulated,omitempty"` // prediction of the queue simulation alone, from service times
	// prediction of the search before the first final; absent unless the measured figure is of the
	// finals
	Believed *Estimate `json:"believed,omitempty"`
	Measured Estimate  `json:"measured"` // figure of the point's own windows
}

// ServiceCurve has the time of one execution by batch size.
type ServiceCurve struct {
	Sizes    []int     `json:"sizes" jsonschema:"items.minimum=1"`             // batch sizes
	Alone    []float64 `json:"alone" jsonschema:"items.minimum=0"`             // time of an execution by size, in seconds, with one instance at work
	Crowded  []float64 `json:"crowded,omitempty" jsonschema:"items.minimum=0"` // time of an execution by size, in seconds, with all instances at work
	Overhead float64   `json:"overhead"`                                       // time of a request outside of queue and instance, in seconds
	// processor time of a request outside of its instance under load, of clients and server together, in
	// seconds; absent where it is unknown, or too little to measure
	Path float64 `json:"path,omitempty" jsonschema:"minimum=0"`
}

// Knob compares the values of a knob with the chosen one.
type Knob struct {
	Knob   string       `json:"knob"`   // name of the knob
	Chosen search.Value `json:"chosen"` // its value in the best configuration
	Others []Effect     `json:"others"` // its other values
}

// Effect is the effect of another value of a knob.
type Effect struct {
	Value search.Value `json:"value"` // the other value
	// how the effect is known; bound: the change is at most this
	Basis  search.Basis `json:"basis" jsonschema:"enum"`
	Change *Estimate    `json:"change,omitempty"` // relative change of the objective, positive if better
	Misses []string     `json:"misses,omitempty"` // constraints that are missed, if nothing with the value satisfies them
}

// Barred is a configuration that would be better without the limit on memory.
type Barred struct {
	Name   string       `json:"name"`   // name of the configuration
	Load   measure.Load `json:"load"`   // its best load
	Change float64      `json:"change"` // relative change of the objective, positive if better
	Misses []string     `json:"misses"` // limits that it misses, and by how much
}

// Untried counts the candidates that were not measured.
type Untried struct {
	Candidates int    `json:"candidates" jsonschema:"minimum=0"` // number of candidates of the space, without the default
	Measured   int    `json:"measured" jsonschema:"minimum=0"`   // number of those with a trial, failed ones included
	Predicted  int    `json:"predicted" jsonschema:"minimum=0"`  // number of those that are predicted from service times, without a window
	Unreached  int    `json:"unreached" jsonschema:"minimum=0"`  // number of those that the campaign ended before
	Skipped    []Fold `json:"skipped"`                           // those whose engine processes do not serve, or cannot matter
	// relative gain that one of them may have, at most with the required probability; absent if the
	// strategy cannot tell
	PossibleGain *float64 `json:"possible_gain,omitempty"`
}
