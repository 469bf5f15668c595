package measure

import "time"

// Window is one measured interval at one load. Its sums are over all requests that completed in it, irrespective of when
// they were sent.
type Window struct {
	Start      time.Duration `json:"start"`      // since the campaign's start
	Duration   time.Duration `json:"duration"`   // wall time of the window
	Requests   int           `json:"requests"`   // completed without error
	Inferences int           `json:"inferences"` // requests × client batch
	Errors     int           `json:"errors"`     // failed or refused requests
	FirstError string        `json:"first_error,omitempty"`
	Sub        []SubWindow   `json:"sub"` // 10–20 equal slices in time order, for intervals and autocorrelation

	Server    ServerStats   `json:"server"`     // delta of the server's statistics over the window
	EngineCPU time.Duration `json:"engine_cpu"` // CPU time the engine process used; 0 when it cannot be known
	ClientCPU time.Duration `json:"client_cpu"` // CPU time the load generator used
	Steal     float64       `json:"steal"`      // share of the machine's CPU time stolen by the hypervisor, 0..1
	Foreign   float64       `json:"foreign"`    // share of the machine's CPU time used by other processes, 0..1
	Flags     []Flag        `json:"flags,omitempty"`
}

// SubWindow is a slice of a window: how many requests completed in it, and their latencies.
type SubWindow struct {
	Requests int       `json:"requests"`
	Latency  Histogram `json:"latency"`
}

// ServerStats is the change of a model's statistics over a window (Triton's statistics extension): counts, and the summed
// durations of the requests' parts. Zero when the server does not report statistics.
type ServerStats struct {
	Requests      int           `json:"requests"`   // success.count
	Inferences    int           `json:"inferences"` // inference_count
	Executions    int           `json:"executions"` // execution_count
	Queue         time.Duration `json:"queue"`      // summed over requests
	ComputeInput  time.Duration `json:"compute_input"`
	ComputeInfer  time.Duration `json:"compute_infer"`
	ComputeOutput time.Duration `json:"compute_output"`
	Batches       []BatchStat   `json:"batches,omitempty"` // ascending by size
}

// BatchStat says how often a batch size was executed, and how long its compute_infer took in sum.
type BatchStat struct {
	Size         int           `json:"size"`
	Executions   int           `json:"executions"`
	ComputeInfer time.Duration `json:"compute_infer"`
}

// MeanBatch is the mean executed batch size; 0 when nothing was executed.
func (s ServerStats) MeanBatch() float64 {
	if s.Executions == 0 {
		return 0
	}
	return float64(s.Inferences) / float64(s.Executions)
}

// Flag marks a window whose figures deserve less trust, and says why. A flagged window is shown, never silently dropped.
type Flag string

// The validity flags (docs/design/measurement.md).
const (
	FlagLittle    Flag = "little"     // throughput × mean latency differs from the concurrency by more than 3 %
	FlagErrors    Flag = "errors"     // requests failed
	FlagClientCPU Flag = "client_cpu" // the load generator itself was short of CPU
	FlagSteal     Flag = "steal"      // the hypervisor took more than 1 % of the CPU time
	FlagForeign   Flag = "foreign"    // other processes used more than 10 % of the CPU time
	FlagUnsteady  Flag = "unsteady"   // throughput still had a trend after warm-up
	FlagFew       Flag = "few"        // too few requests for the percentile that is constrained
)
