package output

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"tuner/measure"
	"tuner/measure/arrivals"
	"tuner/perf"
)

// Format is the version of the JSON report. It grows when a field changes its meaning or
// disappears.
const Format = 1

// document is the JSON report, described in docs/reference/perf.md. Times are seconds, sizes bytes.
type document struct {
	Format   int          `json:"format"`   // version of this format: 1
	Program  string       `json:"program"`  // name and version of the program that measured
	Machine  string       `json:"machine"`  // machine of the load generator
	Settings jsonSettings `json:"settings"` // what was asked for
	Levels   []jsonLevel  `json:"levels"`   // the levels, in the order of measuring
	// index of the level with the most throughput within the limit; null without one, or
	// without a limit
	Best        *int     `json:"best"`
	Warnings    []string `json:"warnings"`    // warnings about the whole run
	Interrupted bool     `json:"interrupted"` // the user interrupted the run
}

type jsonSettings struct {
	Model    string    `json:"model"`             // name of the model
	Version  string    `json:"version,omitempty"` // version of the model
	URL      string    `json:"url"`               // address of the server
	Protocol string    `json:"protocol"`          // protocol of the requests: http or grpc
	Mode     perf.Mode `json:"mode"`              // kind of the load
	// pattern of the arrivals, for a request rate
	Distribution arrivals.Kind `json:"distribution,omitempty"`
	Arrivals     string        `json:"arrivals,omitempty"`      // the parameters of the pattern, for people; absent without any
	Levels       jsonRange     `json:"levels"`                  // range of the levels
	Search       perf.Search   `json:"search"`                  // order in which levels are measured
	LatencyLimit float64       `json:"latency_limit,omitempty"` // limit on the latency, in seconds
	GoodputLimit float64       `json:"goodput_limit,omitempty"` // limit within which answers count as goodput, in seconds
	// percentile of the latency that is judged; absent: the mean is judged
	Percentile int      `json:"percentile,omitempty"`
	Batch      int      `json:"batch_size"` // client batch: inferences per request
	Stop       jsonStop `json:"stop"`       // rule that ends a level
	// number of requests per level, in place of windows
	RequestCount   int `json:"request_count,omitempty"`
	WarmUpRequests int `json:"warm_up_requests,omitempty"` // number of requests before the windows
	Streams        int `json:"streams,omitempty"`          // number of data streams in the user's JSON data
	Steps          int `json:"steps,omitempty"`            // number of steps in the user's JSON data
	// --async was given; it does not change how requests are sent
	Async     bool `json:"async"`
	Streaming bool `json:"streaming"` // requests are sent over gRPC streams
	// the model answers a request with any number of responses
	Decoupled  bool   `json:"decoupled"`
	Cache      bool   `json:"response_cache"` // the server caches responses
	Statistics bool   `json:"statistics"`     // the server reports statistics
	Metrics    bool   `json:"metrics"`        // the server's metrics are read
	PID        int    `json:"pid,omitempty"`  // process id of the engine on this machine
	Seed       uint64 `json:"seed"`           // seed of all random choices
}

type jsonRange struct {
	Start float64  `json:"start"` // first level
	End   *float64 `json:"end"`   // last level; null: no end
	Step  float64  `json:"step"`  // distance of levels
}

type jsonStop struct {
	Rule perf.Rule `json:"rule"` // rule that ends a level
	// relative half width of the interval that ends a level
	Precision float64 `json:"precision,omitempty"`
	Budget    float64 `json:"budget,omitempty"` // longest time of a level, in seconds
	// largest relative difference of the last windows
	Stability float64 `json:"stability,omitempty"`
	Trials    int     `json:"trials,omitempty"`   // largest number of windows
	Window    float64 `json:"window,omitempty"`   // length of a window, in seconds
	Requests  int     `json:"requests,omitempty"` // number of requests in a window
}

type jsonLevel struct {
	Load   measure.Load `json:"load"`           // the level and its client batch
	Seed   uint64       `json:"seed,omitempty"` // seed of a random schedule
	Begin  time.Time    `json:"begin"`          // instant from which windows count
	WarmUp float64      `json:"warm_up"`        // time until the first window, in seconds
	// why the level ended; unjudged: fewer than three windows under --stop stability
	Verdict perf.Verdict `json:"verdict"`
	// how the latency keeps its limit; likely: the interval contains the limit. A level with more
	// than 1 % of failed or dropped requests misses it
	Limit    perf.Limit `json:"limit,omitempty"`
	Failure  string     `json:"failure,omitempty"` // why the level failed
	Warnings []string   `json:"warnings"`          // warnings about this level
	// requests that were due and unanswered when the last window ended
	Unfinished int `json:"unfinished"`
	// how long the first of the unfinished requests had waited, in seconds
	Waited float64 `json:"waited,omitempty"`
	// requests that were sent again, since the server had closed their connection without an
	// answer; it includes the warm-up
	Resent int `json:"resent"`
	jsonMeasurement
	// all latencies in nanoseconds: HdrHistogram's compressed V2 encoding in base64
	Histogram measure.Histogram `json:"latency_histogram"`
	// at most 60 windows; a long run joins them in pairs
	Windows []jsonWindow `json:"windows"`
	// models that an ensemble calls, or that --bls-composing-models names
	Composing []jsonComposing `json:"composing,omitempty"`
	// loads on other models at the same time (--with)
	Others []jsonOther `json:"others,omitempty"`
}

// jsonComposing is a model that an ensemble calls.
type jsonComposing struct {
	Model   string      `json:"model"`   // name of the model
	Version string      `json:"version"` // version of the model
	Server  *jsonServer `json:"server"`  // its statistics; null: not reported
}

// jsonOther is the load on another model at the same time.
type jsonOther struct {
	Model string       `json:"model"` // name of the model
	Load  measure.Load `json:"load"`  // load on the model
	jsonMeasurement
}

// jsonMeasurement has the figures of windows taken together.
type jsonMeasurement struct {
	Duration   float64       `json:"duration"`   // time of the windows, in seconds
	Throughput *jsonEstimate `json:"throughput"` // inferences per second; null without a window
	// inferences per second whose request was answered within settings.goodput_limit; absent without
	// a limit
	Goodput *jsonEstimate `json:"goodput,omitempty"`
	// by mean, p50, p90, p95, p99 and the asked percentile, in seconds; empty when nothing was
	// answered
	Latency map[string]jsonEstimate `json:"latency"`
	Std     float64                 `json:"latency_std"` // standard deviation of the latency, in seconds
	jsonCounts
	InFlight float64 `json:"in_flight"` // mean number of requests in flight
	// latency from the sending, in seconds, in an open loop
	Service *jsonPercentiles `json:"service,omitempty"`
	// delay by the load generator, in seconds: scheduled instant to sending in an open loop,
	// answer to next sending in a closed loop
	SendDelay *jsonPercentiles `json:"send_delay,omitempty"`
	Server    *jsonServer      `json:"server,omitempty"` // statistics of the server
	Engine    *jsonEngine      `json:"engine,omitempty"` // CPU time and memory of the engine's process
	ClientCPU float64          `json:"client_cpu"`       // CPU time of the load generator, in seconds
	// share of the usable CPU time that other processes took; 0 also if the engine's process is
	// not known
	Foreign float64 `json:"foreign"`
	// share of the usable CPU time that the hypervisor took
	Steal float64 `json:"steal"`
	// share of the processors' time in which a cgroup's CPU quota stopped threads; absent without
	// a quota
	Throttled float64             `json:"throttled,omitempty"`
	GPUs      []measure.GPUWindow `json:"gpus,omitempty"`                 // figures of each GPU
	Energy    float64             `json:"energy_per_inference,omitempty"` // energy per inference, in J
	// reasons for less trust in the windows, each once
	Flags []measure.Flag `json:"flags"`
}

type jsonCounts struct {
	Requests   int    `json:"requests"`              // requests that were answered without error
	Inferences int    `json:"inferences"`            // requests × client batch
	Responses  int    `json:"responses,omitempty"`   // responses of a decoupled model
	Errors     int    `json:"errors"`                // failed requests
	TimedOut   int    `json:"timed_out"`             // failed requests that were not answered in time
	FirstError string `json:"first_error,omitempty"` // message of the first failed request
	Scheduled  int    `json:"scheduled,omitempty"`   // open loop: requests that the schedule had
	Late       int    `json:"late"`                  // open loop: requests sent more than 1 ms late
	// open loop: requests that were never sent, since --max-outstanding were in flight
	Dropped int `json:"dropped"`
}

type jsonEstimate struct {
	Value float64 `json:"value"` // the value
	Lo    float64 `json:"lo"`    // lower end of its 95 % interval
	// upper end of its 95 % interval; null: too few requests for it
	Hi *float64 `json:"hi"`
}

type jsonPercentiles struct {
	Mean float64 `json:"mean"` // mean
	P50  float64 `json:"p50"`  // median
	P90  float64 `json:"p90"`  // 90th percentile
	P95  float64 `json:"p95"`  // 95th percentile
	P99  float64 `json:"p99"`  // 99th percentile
	Max  float64 `json:"max"`  // maximum
}

// jsonServer has counts, and means per request.
type jsonServer struct {
	Requests     int     `json:"requests"`      // requests that succeeded
	Failures     int     `json:"failures"`      // requests that failed
	Inferences   int     `json:"inferences"`    // inferences
	Executions   int     `json:"executions"`    // executed batches
	MeanBatch    float64 `json:"mean_batch"`    // mean size of the executed batches
	Latency      float64 `json:"latency"`       // time in the server, in seconds
	Queue        float64 `json:"queue"`         // time in the queue, in seconds
	ComputeInput float64 `json:"compute_input"` // time in which inputs are gathered, in seconds
	ComputeInfer float64 `json:"compute_infer"` // time in which the model computes, in seconds
	// time in which outputs are handed out, in seconds
	ComputeOutput float64     `json:"compute_output"`
	CacheHits     int         `json:"cache_hits,omitempty"`   // answers that came from the response cache
	CacheMisses   int         `json:"cache_misses,omitempty"` // answers that the response cache did not have
	CacheHit      float64     `json:"cache_hit,omitempty"`    // time of a cache hit, in seconds
	CacheMiss     float64     `json:"cache_miss,omitempty"`   // time of a cache miss, in seconds
	Batches       []jsonBatch `json:"batches,omitempty"`      // executions by batch size, ascending
}

// jsonBatch has the executions of one batch size, and the mean of their time.
type jsonBatch struct {
	Size         int     `json:"size"`          // inferences in the batch
	Executions   int     `json:"executions"`    // number of executions
	ComputeInfer float64 `json:"compute_infer"` // mean time of an execution, in seconds
}

// jsonEngine has the engine's CPU time, and the peak of its memory.
type jsonEngine struct {
	CPU    float64 `json:"cpu"`              // CPU time, in seconds
	Memory int64   `json:"memory,omitempty"` // peak of the resident memory, in bytes
}

type jsonWindow struct {
	Start      float64          `json:"start"`      // beginning, in seconds since begin
	Duration   float64          `json:"duration"`   // length, in seconds
	Throughput float64          `json:"throughput"` // inferences per second
	Latency    *jsonPercentiles `json:"latency"`    // latency in seconds; null without an answer
	// latency from the sending, in seconds, in an open loop
	Service   *jsonPercentiles `json:"service,omitempty"`
	SendDelay *jsonPercentiles `json:"send_delay,omitempty"` // delay by the load generator, in seconds
	jsonCounts
	InFlight  float64     `json:"in_flight"`        // mean number of requests in flight
	Server    *jsonServer `json:"server,omitempty"` // statistics of the server
	Engine    *jsonEngine `json:"engine,omitempty"` // CPU time and memory of the engine's process
	ClientCPU float64     `json:"client_cpu"`       // CPU time of the load generator, in seconds
	// share of the usable CPU time that other processes took
	Foreign float64 `json:"foreign"`
	// share of the usable CPU time that the hypervisor took
	Steal float64 `json:"steal"`
	// share of the processors' time in which a cgroup's CPU quota stopped threads
	Throttled float64 `json:"throttled,omitempty"`
	// clock of the fastest core relative to the first window's
	Frequency float64             `json:"frequency,omitempty"`
	GPUs      []measure.GPUWindow `json:"gpus,omitempty"` // figures of each GPU
	Flags     []measure.Flag      `json:"flags"`          // reasons for less trust in the window
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
