// Package record is the file format of recorded landscapes (lab/docs/landscape.md). A file holds
// what a campaign could have measured of one model on one machine, point by point. The recorder
// writes such files, and package landscape replays campaigns on them. The package reads and writes
// values, and judges no figure.
package record

import (
	"math"
	"sort"
	"time"

	"tuner/measure"
	"tuner/search"
)

// Version is the version of the format that this package writes, and the only one that it reads.
const Version = 1

// Header is the first line of a file. It describes the recording and its machine.
type Header struct {
	Version int               `json:"version"`
	Name    string            `json:"name"`
	Created time.Time         `json:"created"`
	Machine string            `json:"machine"` // fingerprint; figures of two machines cannot be compared
	Host    string            `json:"host"`    // the machine for people: processor and cores
	Runtime string            `json:"runtime"` // ONNX Runtime build, flavour@version
	Models  map[string]string `json:"models"`  // precision → sha256 of the model file
	Config  string            `json:"config"`  // default configuration, config.pbtxt
	Space   search.Space      `json:"space"`
	Window  time.Duration     `json:"window"` // requested length
	Seed    uint64            `json:"seed"`   // of the order
	Notes   string            `json:"notes,omitempty"`
}

// File is a whole recording, with its trials in the order of measurement.
type File struct {
	Header   Header
	Points   []Point
	Services []Service
}

// Span returns the time of the trials, without pauses between the recorder's runs.
func (f File) Span() time.Duration {
	last := time.Duration(0)
	for _, p := range f.Points {
		last = max(last, p.At)
	}
	for _, s := range f.Services {
		last = max(last, s.At)
	}
	return last
}

// Trial is the common part of all measurements.
type Trial struct {
	Candidate search.Candidate `json:"candidate"`
	Pass      int              `json:"pass"`   // over the whole space, from 1; 0: repeats beyond the passes
	Launch    int              `json:"launch"` // ordinal of the engine launch, from 1
	At        time.Duration    `json:"at"`     // its end, since the recording's start, without pauses between runs
	Times     measure.Times    `json:"times"`
	Memory    int64            `json:"memory,omitempty"` // bytes, peak resident set of the engine process; 0 unknown
	Failure   *measure.Failure `json:"failure,omitempty"`
}

// Point is one trial of a configuration at a load.
type Point struct {
	Trial
	Level     float64  `json:"level"`               // on the load axis
	Reference bool     `json:"reference,omitempty"` // of the point that is repeated to show the machine's drift
	Windows   []Window `json:"windows,omitempty"`   // none after a failure
}

// logThroughput returns the mean of the logarithms of its windows' throughputs.
func (p Point) logThroughput() float64 {
	sum := 0.0
	for _, w := range p.Windows {
		sum += math.Log(w.Throughput())
	}
	return sum / float64(len(p.Windows))
}

// stolen returns the mean share of the CPU time that the hypervisor took from its windows.
func (p Point) stolen() float64 {
	sum := 0.0
	for _, w := range p.Windows {
		sum += w.Steal
	}
	return sum / float64(len(p.Windows))
}

// Window is one window, reduced to the data of a replay. All times are per request.
type Window struct {
	Duration   time.Duration `json:"duration"`
	Requests   []int         `json:"requests"` // by sub-window of equal length
	Errors     int           `json:"errors,omitempty"`
	Latency    Sketch        `json:"latency"`
	Executions int           `json:"executions"`
	Queue      time.Duration `json:"queue"` // mean
	Input      time.Duration `json:"input"` // mean
	Infer      time.Duration `json:"infer"` // mean
	Output     time.Duration `json:"output"`
	CPU        time.Duration `json:"cpu,omitempty"`        // of the engine, in the whole window; 0 unknown
	ClientCPU  time.Duration `json:"client_cpu,omitempty"` // of the clients, in the whole window; 0 unknown
	Steal      float64       `json:"steal,omitempty"`      // share of the machine's CPU time that the hypervisor took, 0..1
	Flags      []string      `json:"flags,omitempty"`
}

// Service is a service trial: in a pool's process, the times of requests of each client batch at a
// concurrency.
type Service struct {
	Trial
	Concurrency int           `json:"concurrency"`
	Batches     []BatchFigure `json:"batches,omitempty"` // ascending by size; none after a failure
}

// BatchFigure holds the mean times of requests of one client batch.
type BatchFigure struct {
	Size       int           `json:"size"` // inferences in a request
	Requests   int           `json:"requests"`
	Executions int           `json:"executions"`
	Queue      time.Duration `json:"queue"`
	Input      time.Duration `json:"input"`
	Infer      time.Duration `json:"infer"`
	Output     time.Duration `json:"output"`
	Latency    Sketch        `json:"latency"`
}

// sketchLevels are the shares at which a Sketch keeps the latency.
var sketchLevels = [...]float64{0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1}

// Sketch is a distribution of latencies by its quantiles at fixed levels, ascending, in nanoseconds
// to four digits.
type Sketch [len(sketchLevels)]int64

// NewSketch makes the sketch of a quantile function in seconds.
func NewSketch(quantile func(level float64) float64) Sketch {
	var s Sketch
	for i, level := range sketchLevels {
		s[i] = int64(rounded(quantile(level) * 1e9))
	}
	return s
}

// rounded returns a positive number to four digits; below 1 it returns 0.
func rounded(x float64) float64 {
	if x < 1 {
		return 0
	}
	digit := math.Pow(10, max(0, math.Floor(math.Log10(x))-3))
	return math.Round(x/digit) * digit
}

// Quantile returns the latency in seconds that a share of the requests does not exceed: linear
// between the levels.
func (s Sketch) Quantile(level float64) float64 {
	i := sort.SearchFloat64s(sketchLevels[:], level)
	if i == 0 || i == len(s) {
		return float64(s[min(i, len(s)-1)]) / 1e9
	}
	low, high := sketchLevels[i-1], sketchLevels[i]
	a, b := float64(s[i-1]), float64(s[i])
	return (a + (b-a)*(level-low)/(high-low)) / 1e9
}

// Mean returns the mean latency in seconds of the distribution that is linear between the levels.
func (s Sketch) Mean() float64 {
	sum := 0.0
	for i := 1; i < len(s); i++ {
		sum += (sketchLevels[i] - sketchLevels[i-1]) * float64(s[i-1]+s[i]) / 2
	}
	return sum / 1e9
}

// Throughput returns the window's requests per second.
func (w Window) Throughput() float64 {
	n := 0
	for _, r := range w.Requests {
		n += r
	}
	return float64(n) / w.Duration.Seconds()
}
