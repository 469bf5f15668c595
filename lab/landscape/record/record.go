// Package record is the file format of recorded landscapes (lab/docs/landscape.md): what a campaign
// could have measured of one model on one machine, point by point. The recorder writes such files,
// and package landscape replays campaigns on them. The package reads and writes values, and judges
// no figure.
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

// Header is the first line of a file: what was recorded, and where.
type Header struct {
	Version int               `json:"version"`
	Name    string            `json:"name"`
	Created time.Time         `json:"created"`
	Machine string            `json:"machine"` // fingerprint; figures of another machine do not compare
	Host    string            `json:"host"`    // the machine for people: processor and cores
	Runtime string            `json:"runtime"` // ONNX Runtime build, flavour@version
	Models  map[string]string `json:"models"`  // precision → sha256 of the model file
	Config  string            `json:"config"`  // default configuration, config.pbtxt
	Space   search.Space      `json:"space"`
	Window  time.Duration     `json:"window"` // length that was asked for
	Seed    uint64            `json:"seed"`   // of the order
	Notes   string            `json:"notes,omitempty"`
}

// File is a whole recording, its trials in the order in which they were made.
type File struct {
	Header   Header
	Points   []Point
	Services []Service
}

// Span is the time that the trials took, pauses between the recorder's runs left out.
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

// Trial is what all measurements have in common.
type Trial struct {
	Candidate search.Candidate `json:"candidate"`
	Pass      int              `json:"pass"`   // over the whole space, from 1; 0: again, beyond the passes
	Launch    int              `json:"launch"` // ordinal of the engine launch, from 1
	At        time.Duration    `json:"at"`     // its end, since the recording's start, pauses between runs left out
	Times     measure.Times    `json:"times"`
	Memory    int64            `json:"memory,omitempty"` // bytes, peak resident set of the engine process; 0 unknown
	Failure   *measure.Failure `json:"failure,omitempty"`
}

// Point is one trial of a configuration at a load.
type Point struct {
	Trial
	Level     float64  `json:"level"`               // on the load axis
	Reference bool     `json:"reference,omitempty"` // of the point that is repeated to see the machine's drift
	Windows   []Window `json:"windows,omitempty"`   // none after a failure
}

// logThroughput is the mean of the logarithms of its windows' throughputs.
func (p Point) logThroughput() float64 {
	sum := 0.0
	for _, w := range p.Windows {
		sum += math.Log(w.Throughput())
	}
	return sum / float64(len(p.Windows))
}

// stolen is the mean share of the CPU time that the hypervisor took from its windows.
func (p Point) stolen() float64 {
	sum := 0.0
	for _, w := range p.Windows {
		sum += w.Steal
	}
	return sum / float64(len(p.Windows))
}

// Window is one window, shortened to what a replay needs. All times are per request.
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
	ClientCPU  time.Duration `json:"client_cpu,omitempty"` // of the clients, likewise
	Steal      float64       `json:"steal,omitempty"`      // share of the machine's CPU time that the hypervisor took, 0..1
	Flags      []string      `json:"flags,omitempty"`
}

// Service is a service trial: in a pool's process, what requests of each client batch take at a
// concurrency.
type Service struct {
	Trial
	Concurrency int           `json:"concurrency"`
	Batches     []BatchFigure `json:"batches,omitempty"` // ascending by size; none after a failure
}

// BatchFigure is what the requests of one client batch took, in the mean.
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

// rounded is a positive number to four digits, and any below 1 is 0.
func rounded(x float64) float64 {
	if x < 1 {
		return 0
	}
	digit := math.Pow(10, max(0, math.Floor(math.Log10(x))-3))
	return math.Round(x/digit) * digit
}

// Quantile is the latency in seconds that a share of the requests does not exceed: linear between
// the levels.
func (s Sketch) Quantile(level float64) float64 {
	i := sort.SearchFloat64s(sketchLevels[:], level)
	if i == 0 || i == len(s) {
		return float64(s[min(i, len(s)-1)]) / 1e9
	}
	low, high := sketchLevels[i-1], sketchLevels[i]
	a, b := float64(s[i-1]), float64(s[i])
	return (a + (b-a)*(level-low)/(high-low)) / 1e9
}

// Mean is the mean latency in seconds: of the distribution that is linear between the levels.
func (s Sketch) Mean() float64 {
	sum := 0.0
	for i := 1; i < len(s); i++ {
		sum += (sketchLevels[i] - sketchLevels[i-1]) * float64(s[i-1]+s[i]) / 2
	}
	return sum / 1e9
}

// Throughput is the window's requests per second.
func (w Window) Throughput() float64 {
	n := 0
	for _, r := range w.Requests {
		n += r
	}
	return float64(n) / w.Duration.Seconds()
}
