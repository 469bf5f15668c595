package measure

import (
	"cmp"
	"time"
)

// Look is the share of a window after which it may be cut, if the figures up to then suffice.
const Look = 0.4

// ServiceBatches is the least number of batches of each size in a service trial: the runner has three
// before a size's window and two in it.
const ServiceBatches = 5

// Window is one measured interval at one load. Its sums are over all requests that completed in it,
// whenever they were sent.
type Window struct {
	// name under which the model is served, of a measurement of several models. Each has a window
	// between two edges, and the figures of process and machine are in all of them. "": one model
	Model      string        `json:"model,omitempty"`
	Start      time.Duration `json:"start"`                 // since the campaign's start
	Duration   time.Duration `json:"duration"`              // wall time of the window
	Requests   int           `json:"requests"`              // completed without error
	Inferences int           `json:"inferences"`            // requests × client batch
	Errors     int           `json:"errors"`                // failed or refused requests
	FirstError string        `json:"first_error,omitempty"` // message of the first failed request
	// 10–20 slices of equal length except the last, for intervals and autocorrelation
	Sub []SubWindow `json:"sub"`

	Scheduled int `json:"scheduled,omitempty"` // open loop: instants of the schedule in the window
	// open loop whose schedule repeats: whole periods in the window. Its sub-windows see different
	// parts of the schedule
	Periods int `json:"periods,omitempty"`
	// open loop: sent more than 1 ms after the scheduled instant
	Late int `json:"late,omitempty"`
	// open loop: never sent, since the bound on requests in flight was reached
	Dropped int `json:"dropped,omitempty"`
	// errors because no answer came within the request's timeout
	TimedOut int `json:"timed_out,omitempty"`
	// open loop: scheduled instant to sending; closed loop: answer to next sending
	SendDelay Histogram `json:"send_delay,omitzero"`
	// requests in flight, mean over the window's time
	InFlight float64 `json:"in_flight,omitempty"`
	// responses of decoupled models, any number per request; 0: one for each
	Responses int `json:"responses,omitempty"`

	// change of the server's statistics over the window
	Server ServerStats `json:"server"`
	// of a pipeline: the same for each of its stages, in their order
	Stages []StageStats `json:"stages,omitempty"`
	// CPU time that the engine process used; 0: unknown
	EngineCPU time.Duration `json:"engine_cpu"`
	ClientCPU time.Duration `json:"client_cpu"` // CPU time that the load generator used
	// share of the CPU time of the usable cores that the hypervisor took, 0..1
	Steal float64 `json:"steal"`
	// share of the CPU time of the usable cores that other processes used, 0..1
	Foreign float64 `json:"foreign"`
	// share of the cpuset's CPU time in which the quota of the cgroup stopped threads, 0..1
	Throttled float64 `json:"throttled,omitempty"`
	// usable cores: CPU time that engine and clients may use, counted in cores, by the cpuset or
	// the quota; 0: unknown
	Cores float64 `json:"cores,omitempty"`
	// clock of the fastest core relative to the first window's; 0: unknown
	Frequency float64     `json:"frequency,omitempty"`
	GPUs      []GPUWindow `json:"gpus,omitempty"` // figures of each GPU
	// energy that the machine's CPU packages used, in J; 0: unknown
	CPUEnergy float64 `json:"cpu_energy,omitempty"`
	// service trials: peak resident set in bytes, from the beginning of the trial to the end of the
	// window; 0: unknown
	Memory int64  `json:"memory,omitempty"`
	Flags  []Flag `json:"flags,omitempty"` // reasons for less trust in the figures
	// the window took turns with windows of other engines: it is short, with a pause before and
	// after
	Turn bool `json:"turn,omitempty"`
}

// Little returns the throughput of a closed loop by Little's law, in inferences per second:
// requests in flight over the mean latency. Counting completed requests has up to twice the
// variance in a short window, since whole batches end near its edges. Little returns false in an
// open loop, where requests failed, or where none completed: the law does not apply there.
func (w Window) Little() (float64, bool) {
	if w.Scheduled > 0 || w.Errors > 0 || w.InFlight <= 0 || w.Requests == 0 {
		return 0, false
	}
	latency, ok := Measurement{Windows: []Window{w}}.meanLatency()
	if !ok || latency.Value <= 0 {
		return 0, false
	}
	return w.InFlight / latency.Value * float64(w.Inferences) / float64(w.Requests), true
}

// AllResponses returns the number of responses to the completed requests, also if there was one for
// each.
func (w Window) AllResponses() int { return cmp.Or(w.Responses, w.Requests) }

// isEmpty reports whether the window is a turn in which nothing ended. A batch took longer than the
// turn, so the window has no throughput.
func (w Window) isEmpty() bool { return w.Turn && w.Scheduled == 0 && w.Requests+w.Errors == 0 }

// served returns the number of inferences that the window stands for: those completed in it, or in
// a turn those by Little's law.
func (w Window) served() float64 {
	if w.Turn {
		if rate, ok := w.Little(); ok {
			return rate * w.Duration.Seconds()
		}
	}
	return float64(w.Inferences)
}

// shareWithin returns the share of the completed requests that were answered within a limit. It is
// 1 if none completed.
func (w Window) shareWithin(limit time.Duration) float64 {
	if limit == anyLatency || w.Requests == 0 {
		return 1
	}
	n := 0
	for _, s := range w.Sub {
		n += s.within(limit)
	}
	return float64(n) / float64(w.Requests)
}

// SubWindow is a slice of a window: the number of requests that completed in it, and their
// latencies. In a closed loop a latency counts from the sending. In an open loop it counts from the
// scheduled instant. So a server that stalls cannot hide behind requests that were not sent
// meanwhile (coordinated omission).
type SubWindow struct {
	Requests int `json:"requests"` // completed without error
	// 0, in old files: an equal part of the window
	Duration time.Duration `json:"duration,omitempty"`
	Latency  Histogram     `json:"latency"` // latencies of the completed requests
	// open loop: latencies counted from the sending
	Service Histogram `json:"service,omitzero"`
	// sum of the latencies, without the rounding of the histogram; 0: unknown
	Sum time.Duration `json:"sum,omitempty"`
}

// within returns the number of completed requests that were answered within a limit, to the three
// digits of the histogram.
func (s SubWindow) within(limit time.Duration) int {
	if limit == anyLatency {
		return s.Requests
	}
	return s.Latency.CountAtMost(limit)
}

// ServerStats is the change of a model's statistics over a window (Triton's statistics extension):
// counts, and the summed durations of the requests' parts. It is zero if the server does not report
// statistics.
type ServerStats struct {
	Requests      int           `json:"requests"`               // success.count
	Inferences    int           `json:"inferences"`             // inference_count
	Executions    int           `json:"executions"`             // execution_count
	Queue         time.Duration `json:"queue"`                  // summed over requests
	ComputeInput  time.Duration `json:"compute_input"`          // summed over requests
	ComputeInfer  time.Duration `json:"compute_infer"`          // summed over requests
	ComputeOutput time.Duration `json:"compute_output"`         // summed over requests
	Success       time.Duration `json:"success,omitempty"`      // total time in the server
	Failures      int           `json:"failures,omitempty"`     // fail.count
	CacheHits     int           `json:"cache_hits,omitempty"`   // cache_hit.count
	CacheMisses   int           `json:"cache_misses,omitempty"` // cache_miss.count
	// time to look up and copy answers that were in the cache
	CacheHit time.Duration `json:"cache_hit,omitempty"`
	// time to look up and store answers that were not in the cache
	CacheMiss time.Duration `json:"cache_miss,omitempty"`
	Batches   []BatchStat   `json:"batches,omitempty"` // ascending by size
}

// StageStats is the change of the statistics of a pipeline's stage.
type StageStats struct {
	Model  string      `json:"model"`  // name under which the stage is served
	Server ServerStats `json:"server"` // as the window's, of this stage
}

// BatchStat is the number of executions of a batch size, and the sum of their compute_infer.
type BatchStat struct {
	Size         int           `json:"size"`          // inferences in the batch
	Executions   int           `json:"executions"`    // number of executions with this size
	ComputeInfer time.Duration `json:"compute_infer"` // summed over these executions
}

// BatchTime is the mean time of the executed batches of a size in their instance.
type BatchTime struct {
	Size       int     `json:"size" jsonschema:"minimum=1"`             // inferences in the batch
	Executions int     `json:"executions" jsonschema:"minimum=1"`       // number of executions with this size
	Seconds    float64 `json:"seconds" jsonschema:"exclusiveMinimum=0"` // mean time of one in its instance
}

// MeanBatch returns the mean executed batch size. It is 0 if nothing was executed.
func (s ServerStats) MeanBatch() float64 {
	if s.Executions == 0 {
		return 0
	}
	return float64(s.Inferences) / float64(s.Executions)
}

// InstanceTime returns the summed time in which instances were busy with executions. Each request
// of a batch counts the whole batch's time. So if batch sizes are unknown, the time of an execution
// is the mean time of a request.
func (s ServerStats) InstanceTime() time.Duration {
	if s.Requests == 0 {
		return 0
	}
	perExecution := func(d time.Duration) time.Duration {
		return time.Duration(float64(d) / float64(s.Requests) * float64(s.Executions))
	}
	infer := time.Duration(0)
	for _, b := range s.Batches {
		infer += b.ComputeInfer
	}
	if infer == 0 {
		infer = perExecution(s.ComputeInfer)
	}
	return infer + perExecution(s.ComputeInput+s.ComputeOutput)
}

// Flag marks a window whose figures deserve less trust, and names the reason. Flagged windows stay
// in the results.
type Flag string

// The validity flags (docs/design/measurement.md).
const (
	// throughput × mean latency differs from the concurrency by more than 3 %
	FlagLittle    Flag = "little"
	FlagErrors    Flag = "errors"     // requests failed
	FlagClientCPU Flag = "client_cpu" // the load generator itself was short of CPU time
	FlagSteal     Flag = "steal"      // the hypervisor took more than 1 % of the CPU time
	FlagForeign   Flag = "foreign"    // other processes used more than 10 % of the CPU time
	// other programs computed for more than 10 % of the time on a GPU on which the engine computed
	FlagForeignGPU Flag = "foreign_gpu"
	// the cgroup's CPU quota stopped threads for more than 1 % of the CPU time
	FlagThrottled Flag = "throttled"
	FlagUnsteady  Flag = "unsteady" // throughput still had a trend after warm-up
	FlagFew       Flag = "few"      // too few requests for the percentile that is constrained

	// open loop: 1 % of the requests were late by 1 ms, or the median send delay is above 1 % of
	// the median latency
	FlagLate Flag = "late"
	// open loop: requests were not sent, since too many were in flight
	FlagDropped Flag = "dropped"
	// open loop: the requests in flight grew by more than 10 % of those scheduled
	FlagBacklog Flag = "backlog"
	// closed loop: the load generator took more than 5 % of the mean cycle from answer to next
	// sending
	FlagSendDelay Flag = "send_delay"
	FlagTimeout   Flag = "timeout" // requests were not answered in time
	// the cores' clock differs from the first window's by more than 3 %
	FlagFrequency Flag = "frequency"
	// the sub-windows' rates have a lag-1 autocorrelation above 0.5
	FlagCorrelated Flag = "correlated"
)
