// Package perf measures a model on a server at one load level after the other. Levels are closed
// loops at a concurrency or open loops at a request rate. It can search for the highest level
// within a latency limit. It is `tuner perf` without flags and output. Packages payload and wire
// prepare the requests, package load sends them, and package meter reads the figures of server and
// machine. The result is a Report, which perf/output writes.
//
// The package decides how long a level is measured (the stop rules) and which level comes next. It
// starts no server, changes no configuration, and prints nothing.
package perf

import (
	"slices"
	"time"

	"tuner/measure"
	"tuner/measure/arrivals"
)

// Mode is the kind of load.
type Mode string

// The modes.
const (
	ModeConcurrency Mode = "concurrency"  // closed loop at a concurrency
	ModeRate        Mode = "request_rate" // open loop at a request rate
	ModeIntervals   Mode = "intervals"    // open loop with the user's distances between requests
)

// Search is the order in which levels are measured.
type Search string

// The searches.
const (
	SearchNone Search = "none" // one level
	// upwards, to the first level that misses the latency limit, if there is one
	SearchLinear Search = "linear"
	SearchBinary Search = "binary" // for the highest level within the latency limit
)

// Rule decides when a level has been measured for long enough.
type Rule string

// The rules.
const (
	// when the intervals of throughput and the judged latency have the wanted precision
	RulePrecision Rule = "precision"
	RuleStability Rule = "stability" // perf_analyzer's rule: when three windows in a row agree
)

// Levels are concurrencies or request rates from Start to End, in steps of Step. If Open, they
// continue until the limit is missed.
type Levels struct {
	Start, End, Step float64
	Open             bool
}

// Stop is a stop rule with its parameters.
type Stop struct {
	Rule Rule
	// RulePrecision: half-width of the 95 % intervals, relative to the value
	Precision float64
	Budget    time.Duration // RulePrecision: longest time in windows, per level
	Stability float64       // RuleStability: largest of three values over the least, minus 1
	Trials    int           // RuleStability: largest number of windows, per level
	Window    time.Duration // length of a window
	// > 0: a window ends when that many requests have completed or failed; Window is ignored
	Requests int
}

// Settings describe a run, for the measurement and for reports.
type Settings struct {
	Program  string // name and version of the program, for files that other programs read
	Machine  string // machine of the load generator, for people
	Model    string
	Version  string // wanted version of the model; "": the server's choice
	URL      string
	Protocol string // "http" or "grpc"

	Mode         Mode
	Arrivals     arrivals.Pattern // when the requests of an open loop are due
	Levels       Levels
	Search       Search
	LatencyLimit time.Duration // 0: none
	Percentile   int           // percentile of the latency that is judged, 1..99; 0: the mean
	Goodput      time.Duration // limit within which answers count as goodput; 0: none is shown
	Batch        int           // client batch, ≥ 1
	Stop         Stop

	RequestCount int // > 0: one window of exactly that many requests, without a stop rule
	// > 0: warm up with exactly that many requests instead of until the load is steady
	WarmUpRequests int

	Streams, Steps int  // of the user's JSON data; 0: no data
	Async          bool // as on the command line; it does not change how requests are sent
	Streaming      bool // only gRPC
	Decoupled      bool // the model gives any number of responses per request
	Cache          bool // the server caches the model's answers
	Statistics     bool // the server has statistics
	Metrics        bool // the server's metrics page is read
	PID            int  // PID of the engine on this machine; 0 unknown

	Seed uint64 // seed of the inputs, and of the first random schedule; each further level adds 1
}

// Verdict is the reason why a level's measurement ended.
type Verdict string

// The verdicts.
const (
	VerdictPrecise Verdict = "precise" // the wanted precision was reached
	VerdictStable  Verdict = "stable"  // three windows agreed
	VerdictCounted Verdict = "counted" // the wanted number of requests was sent
	// the budget ran out before the precision was reached
	VerdictBudget      Verdict = "budget"
	VerdictUnstable    Verdict = "unstable"    // no three windows agreed within the trials
	VerdictUnjudged    Verdict = "unjudged"    // there were fewer windows than the rule needs
	VerdictOverLimit   Verdict = "over limit"  // the limit is certainly missed
	VerdictInterrupted Verdict = "interrupted" // by the user, or by the run's deadline
	VerdictFailed      Verdict = "failed"      // the server failed
)

// Limit is the relation of a level's latency to the limit.
type Limit string

// The relations of a latency to the limit.
const (
	LimitMet Limit = "met" // the whole 95 % interval is within the limit
	// the value is within the limit, the interval reaches above
	LimitLikelyMet Limit = "likely met"
	// the value is above the limit, the interval reaches below
	LimitLikelyMissed Limit = "likely missed"
	// the whole interval is above the limit, or more than 1 % of the requests failed or were dropped
	LimitMissed Limit = "missed"
)

// Within reports whether the measured value lies within the limit.
func (l Limit) Within() bool { return l == LimitMet || l == LimitLikelyMet }

// Level is the measurement of one load.
type Level struct {
	Load  measure.Load
	Seed  uint64    // seed of a random schedule
	Begin time.Time // beginning of the level's load, from which the windows' Start counts

	WarmUp time.Duration
	// the windows that count, with the figures of server and machine
	Measurement measure.Measurement
	Verdict     Verdict
	Limit       Limit // "": no limit, or no latency
	// requests that were due or sent, but not answered, at the end of the last window
	Unfinished int
	Waited     time.Duration // age of the oldest of them then
	// requests that were sent once more, since the server had closed their connection; warm-up
	// included
	Resent int

	Composing []Composing // models that an ensemble calls
	Others    []Other     // loads on other models at the same time
	Warnings  []string
	Failure   string // "" unless the verdict is failed
}

// Composing holds the server's statistics of a model that an ensemble calls, over the windows that
// count.
type Composing struct {
	Model, Version string
	Server         measure.ServerStats
}

// Other is the load on another model while a level was measured. It has the windows that lie within
// those of the level.
type Other struct {
	Model       string
	Load        measure.Load
	Measurement measure.Measurement
}

// Report is the result of a run.
type Report struct {
	Settings Settings
	// in the order of measurement; a binary search measures its last level twice
	Levels []Level
	// index of the level with the highest throughput within the latency limit; -1: none, or no
	// limit
	Best        int
	Warnings    []string
	Interrupted bool
}

// Composing lists the models that an ensemble calls. Each has its figures from the first level at
// which it was called.
func (r Report) Composing() []Composing {
	var all []Composing
	for _, l := range r.Levels {
		for _, c := range l.Composing {
			if !slices.ContainsFunc(all, func(other Composing) bool { return other.Model == c.Model && other.Version == c.Version }) {
				all = append(all, c)
			}
		}
	}
	return all
}

// Latency estimates the latency that the settings name, in seconds: a percentile or the mean. It
// returns false if no request completed.
func (s Settings) Latency(m measure.Measurement) (measure.Estimate, bool) {
	if s.Percentile == 0 {
		return m.Estimate(measure.LatencyAvg)
	}
	return m.Percentile(s.quantile())
}

// Observer follows a run. One goroutine at a time calls its methods, which must not block.
type Observer interface {
	// Live is called when a level begins, and after each window.
	Live(Progress)
	// Measured is called when a level has been measured.
	Measured(Level)
}

// Progress is the state of a level's measurement.
type Progress struct {
	Load       measure.Load
	Elapsed    time.Duration // since the beginning of the run
	Window     int           // complete windows, counted before joining; 0: the load is warming up
	Throughput float64       // infer/s in the last window, like the rest
	P50, P99   time.Duration
	InFlight   float64 // mean
	Errors     int     // in all windows of the level, like the rest
	Late       int
	Dropped    int
}
