package output

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"tuner/measure"
	"tuner/perf"
)

// Format is the version of the JSON report. It grows when a field changes its meaning or
// disappears.
const Format = 1

// document is the JSON report, described in docs/reference/perf.md. Times are seconds, sizes bytes.
type document struct {
	Format      int          `json:"format"`
	Program     string       `json:"program"`
	Machine     string       `json:"machine"`
	Settings    jsonSettings `json:"settings"`
	Levels      []jsonLevel  `json:"levels"`
	Best        *int         `json:"best"`
	Warnings    []string     `json:"warnings"`
	Interrupted bool         `json:"interrupted"`
}

type jsonSettings struct {
	Model          string            `json:"model"`
	Version        string            `json:"version,omitempty"`
	URL            string            `json:"url"`
	Protocol       string            `json:"protocol"`
	Mode           perf.Mode         `json:"mode"`
	Distribution   perf.Distribution `json:"distribution,omitempty"`
	Levels         jsonRange         `json:"levels"`
	Search         perf.Search       `json:"search"`
	LatencyLimit   float64           `json:"latency_limit,omitempty"`
	Percentile     int               `json:"percentile,omitempty"`
	Batch          int               `json:"batch_size"`
	Stop           jsonStop          `json:"stop"`
	RequestCount   int               `json:"request_count,omitempty"`
	WarmUpRequests int               `json:"warm_up_requests,omitempty"`
	Streams        int               `json:"streams,omitempty"`
	Steps          int               `json:"steps,omitempty"`
	Async          bool              `json:"async"`
	Streaming      bool              `json:"streaming"`
	Decoupled      bool              `json:"decoupled"`
	Cache          bool              `json:"response_cache"`
	Statistics     bool              `json:"statistics"`
	Metrics        bool              `json:"metrics"`
	PID            int               `json:"pid,omitempty"`
	Seed           uint64            `json:"seed"`
}

type jsonRange struct {
	Start float64  `json:"start"`
	End   *float64 `json:"end"` // null: no end
	Step  float64  `json:"step"`
}

type jsonStop struct {
	Rule      perf.Rule `json:"rule"`
	Precision float64   `json:"precision,omitempty"`
	Budget    float64   `json:"budget,omitempty"`
	Stability float64   `json:"stability,omitempty"`
	Trials    int       `json:"trials,omitempty"`
	Window    float64   `json:"window,omitempty"`
	Requests  int       `json:"requests,omitempty"`
}

type jsonLevel struct {
	Load       measure.Load `json:"load"`
	Seed       uint64       `json:"seed,omitempty"`
	Begin      time.Time    `json:"begin"`
	WarmUp     float64      `json:"warm_up"`
	Verdict    perf.Verdict `json:"verdict"`
	Limit      perf.Limit   `json:"limit,omitempty"`
	Failure    string       `json:"failure,omitempty"`
	Warnings   []string     `json:"warnings"`
	Unfinished int          `json:"unfinished"`
	Waited     float64      `json:"waited,omitempty"`
	Resent     int          `json:"resent"`
	jsonMeasurement
	Histogram measure.Histogram `json:"latency_histogram"`
	Windows   []jsonWindow      `json:"windows"`
	Composing []jsonComposing   `json:"composing,omitempty"`
	Others    []jsonOther       `json:"others,omitempty"`
}

// jsonComposing is a model that an ensemble calls.
type jsonComposing struct {
	Model   string      `json:"model"`
	Version string      `json:"version"`
	Server  *jsonServer `json:"server"`
}

// jsonOther is the load on another model at the same time.
type jsonOther struct {
	Model string       `json:"model"`
	Load  measure.Load `json:"load"`
	jsonMeasurement
}

// jsonMeasurement has the figures of windows taken together.
type jsonMeasurement struct {
	Duration   float64                 `json:"duration"`
	Throughput *jsonEstimate           `json:"throughput"`
	Latency    map[string]jsonEstimate `json:"latency"`
	Std        float64                 `json:"latency_std"`
	jsonCounts
	InFlight  float64             `json:"in_flight"`
	Service   *jsonPercentiles    `json:"service,omitempty"`
	SendDelay *jsonPercentiles    `json:"send_delay,omitempty"`
	Server    *jsonServer         `json:"server,omitempty"`
	Engine    *jsonEngine         `json:"engine,omitempty"`
	ClientCPU float64             `json:"client_cpu"`
	Foreign   float64             `json:"foreign"`
	Steal     float64             `json:"steal"`
	Throttled float64             `json:"throttled,omitempty"`
	GPUs      []measure.GPUWindow `json:"gpus,omitempty"`
	Energy    float64             `json:"energy_per_inference,omitempty"`
	Flags     []measure.Flag      `json:"flags"`
}

type jsonCounts struct {
	Requests   int    `json:"requests"`
	Inferences int    `json:"inferences"`
	Responses  int    `json:"responses,omitempty"`
	Errors     int    `json:"errors"`
	TimedOut   int    `json:"timed_out"`
	FirstError string `json:"first_error,omitempty"`
	Scheduled  int    `json:"scheduled,omitempty"`
	Late       int    `json:"late"`
	Dropped    int    `json:"dropped"`
}

type jsonEstimate struct {
	Value float64  `json:"value"`
	Lo    float64  `json:"lo"`
	Hi    *float64 `json:"hi"` // null: too few requests for an upper bound
}

type jsonPercentiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// jsonServer has counts, and means per request.
type jsonServer struct {
	Requests      int         `json:"requests"`
	Failures      int         `json:"failures"`
	Inferences    int         `json:"inferences"`
	Executions    int         `json:"executions"`
	MeanBatch     float64     `json:"mean_batch"`
	Latency       float64     `json:"latency"`
	Queue         float64     `json:"queue"`
	ComputeInput  float64     `json:"compute_input"`
	ComputeInfer  float64     `json:"compute_infer"`
	ComputeOutput float64     `json:"compute_output"`
	CacheHits     int         `json:"cache_hits,omitempty"`
	CacheMisses   int         `json:"cache_misses,omitempty"`
	CacheHit      float64     `json:"cache_hit,omitempty"`
	CacheMiss     float64     `json:"cache_miss,omitempty"`
	Batches       []jsonBatch `json:"batches,omitempty"`
}

// jsonBatch has the executions of one batch size, and the mean of their time.
type jsonBatch struct {
	Size         int     `json:"size"`
	Executions   int     `json:"executions"`
	ComputeInfer float64 `json:"compute_infer"`
}

// jsonEngine has the engine's CPU time, and the peak of its memory.
type jsonEngine struct {
	CPU    float64 `json:"cpu"`
	Memory int64   `json:"memory,omitempty"`
}

type jsonWindow struct {
	Start      float64          `json:"start"`
	Duration   float64          `json:"duration"`
	Throughput float64          `json:"throughput"`
	Latency    *jsonPercentiles `json:"latency"`
	Service    *jsonPercentiles `json:"service,omitempty"`
	SendDelay  *jsonPercentiles `json:"send_delay,omitempty"`
	jsonCounts
	InFlight  float64             `json:"in_flight"`
	Server    *jsonServer         `json:"server,omitempty"`
	Engine    *jsonEngine         `json:"engine,omitempty"`
	ClientCPU float64             `json:"client_cpu"`
	Foreign   float64             `json:"foreign"`
	Steal     float64             `json:"steal"`
	Throttled float64             `json:"throttled,omitempty"`
	Frequency float64             `json:"frequency,omitempty"`
	GPUs      []measure.GPUWindow `json:"gpus,omitempty"`
	Flags     []measure.Flag      `json:"flags"`
}

// JSON writes the whole report for programs.
func JSON(w io.Writer, r perf.Report) error {
	d := document{
		Format: Format, Program: r.Settings.Program, Machine: r.Settings.Machine, Settings: settingsOf(r.Settings),
		Levels: []jsonLevel{}, Warnings: orEmpty(r.Warnings), Interrupted: r.Interrupted,
	}
	if r.Best >= 0 {
		d.Best = &r.Best
	}
	for _, l := range r.Levels {
		d.Levels = append(d.Levels, levelOf(l, r.Settings))
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return fmt.Errorf("cannot write report: %w", err)
	}
	return nil
}
