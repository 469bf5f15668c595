package measure

import "time"

// Look is the share of a window after which it may be cut, if what it shows by then is enough.
const Look = 0.4

// Window is one measured interval at one load. Its sums are over all requests that completed in it, irrespective of when
// they were sent.
type Window struct {
	Start      time.Duration `json:"start"`      // since the campaign's start
	Duration   time.Duration `json:"duration"`   // wall time of the window
	Requests   int           `json:"requests"`   // completed without error
	Inferences int           `json:"inferences"` // requests × client batch
	Errors     int           `json:"errors"`     // failed or refused requests
	FirstError string        `json:"first_error,omitempty"`
	Sub        []SubWindow   `json:"sub"` // 10–20 slices of equal length but for the last, for intervals and autocorrelation

	Scheduled int       `json:"scheduled,omitempty"` // open loop: instants of the schedule in the window
	Late      int       `json:"late,omitempty"`      // open loop: sent more than 1 ms after the scheduled instant
	Dropped   int       `json:"dropped,omitempty"`   // open loop: never sent, since the bound on requests in flight was reached
	TimedOut  int       `json:"timed_out,omitempty"` // of Errors: no answer within the request's timeout
	SendDelay Histogram `json:"send_delay,omitzero"` // open loop: scheduled instant to sending; closed loop: answer to next sending
	InFlight  float64   `json:"in_flight,omitempty"` // requests in flight, mean over the window's time
	Responses int       `json:"responses,omitempty"` // of decoupled models: any number per request

	Server    ServerStats   `json:"server"`              // delta of the server's statistics over the window
	EngineCPU time.Duration `json:"engine_cpu"`          // CPU time the engine process used; 0 when it cannot be known
	ClientCPU time.Duration `json:"client_cpu"`          // CPU time the load generator used
	Steal     float64       `json:"steal"`               // share of Cores' CPU time stolen by the hypervisor, 0..1
	Foreign   float64       `json:"foreign"`             // share of Cores' CPU time used by other processes, 0..1
	Throttled float64       `json:"throttled,omitempty"` // share of the CPU time of the cpuset in which the cgroup's quota stopped threads, 0..1
	Cores     float64       `json:"cores,omitempty"`     // cores' worth of CPU time that engine and clients may use: those of the cpuset, or the quota; 0 unknown
	Frequency float64       `json:"frequency,omitempty"` // clock of the fastest core relative to the first window's; 0 unknown
	GPUs      []GPUWindow   `json:"gpus,omitempty"`
	CPUEnergy float64       `json:"cpu_energy,omitempty"` // J that the machine's CPU packages used; 0 unknown
	Memory    int64         `json:"memory,omitempty"`     // of service trials: bytes, peak resident set from the trial's beginning to the window's end; 0 unknown
	Flags     []Flag        `json:"flags,omitempty"`
	Turn      bool          `json:"turn,omitempty"` // it took turns with other engines' windows: short, before and after a pause
}

// Little is the throughput of a closed loop by Little's law, in inferences per second: what was in flight, over the mean
// latency. To count what completed tells the same with up to twice the variance where a window is short, since whole batches end
// around its edges. It is false where the law does not tell: in an open loop, where requests failed, or none completed.
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

// isEmpty reports whether nothing ended in a turn: a batch took longer, so that the window tells no throughput.
func (w Window) isEmpty() bool { return w.Turn && w.Scheduled == 0 && w.Requests+w.Errors == 0 }

// served is how many inferences the window stands for: what completed in it, or, in a turn, what Little's law makes of it.
func (w Window) served() float64 {
	if w.Turn {
		if rate, ok := w.Little(); ok {
			return rate * w.Duration.Seconds()
		}
	}
	return float64(w.Inferences)
}

// SubWindow is a slice of a window: how many requests completed in it, and their latencies. In a closed loop a latency counts from the
// sending. In an open loop it counts from the scheduled instant, so that a server that stalls cannot hide behind requests that were
// not sent meanwhile (coordinated omission).
type SubWindow struct {
	Requests int           `json:"requests"`
	Duration time.Duration `json:"duration,omitempty"` // 0, in old files: an equal part of the window
	Latency  Histogram     `json:"latency"`
	Service  Histogram     `json:"service,omitzero"` // open loop: latencies that count from the sending
	Sum      time.Duration `json:"sum,omitempty"`    // of the latencies, free of the histogram's rounding; 0 unknown
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
	Success       time.Duration `json:"success,omitempty"`  // whole time in the server
	Failures      int           `json:"failures,omitempty"` // fail.count
	CacheHits     int           `json:"cache_hits,omitempty"`
	CacheMisses   int           `json:"cache_misses,omitempty"`
	CacheHit      time.Duration `json:"cache_hit,omitempty"`  // looking up and copying answers that were there
	CacheMiss     time.Duration `json:"cache_miss,omitempty"` // looking up and storing answers that were not
	Batches       []BatchStat   `json:"batches,omitempty"`    // ascending by size
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

// InstanceTime is how long instances were busy with executions, in sum. Each request of a batch counts the batch's time: where the sizes are not told, an
// execution takes what its requests take in the mean.
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

// Flag marks a window whose figures deserve less trust, and says why. A flagged window is shown, never silently dropped.
type Flag string

// The validity flags (docs/design/measurement.md).
const (
	FlagLittle    Flag = "little"     // throughput × mean latency differs from the concurrency by more than 3 %
	FlagErrors    Flag = "errors"     // requests failed
	FlagClientCPU Flag = "client_cpu" // the load generator itself was short of CPU
	FlagSteal     Flag = "steal"      // the hypervisor took more than 1 % of the CPU time
	FlagForeign   Flag = "foreign"    // other processes used more than 10 % of the CPU time
	FlagThrottled Flag = "throttled"  // the cgroup's CPU quota stopped threads for more than 1 % of the CPU time
	FlagUnsteady  Flag = "unsteady"   // throughput still had a trend after warm-up
	FlagFew       Flag = "few"        // too few requests for the percentile that is constrained

	FlagLate       Flag = "late"       // open loop: 1 % of the requests were late by 1 ms, or the median send delay is above 1 % of the median latency
	FlagDropped    Flag = "dropped"    // open loop: requests were not sent, since too many were in flight
	FlagBacklog    Flag = "backlog"    // open loop: the requests in flight grew by more than 10 % of those scheduled
	FlagSendDelay  Flag = "send_delay" // closed loop: the load generator took more than 5 % of the mean cycle from answer to next sending
	FlagTimeout    Flag = "timeout"    // requests were not answered in time
	FlagFrequency  Flag = "frequency"  // the cores' clock differs from the first window's by more than 3 %
	FlagCorrelated Flag = "correlated" // the sub-windows' rates have a lag-1 autocorrelation above 0.5
)
