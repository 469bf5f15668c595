// Package perf measures a model that is being served, at one load level after the other: closed loops of a concurrency or
// open loops of a request rate, with a search for the highest level within a latency limit. It is `tuner perf` without
// flags and output: requests come prepared (packages payload and wire), package load sends them, package meter reads what
// server and machine say, and what comes out is a Report, a value for the writers of perf/output.
//
// It decides when a level has been measured for long enough (the stop rules) and which level comes next. It starts no
// server, knows no tuning, and prints nothing.
package perf

import (
	"slices"
	"time"

	"tuner/measure"
)

// Mode says what makes the load.
type Mode string

// The modes.
const (
	ModeConcurrency Mode = "concurrency"  // closed loop: so many requests in flight
	ModeRate        Mode = "request_rate" // open loop: so many requests per second
	ModeIntervals   Mode = "intervals"    // open loop: the user's distances between requests
)

// Distribution is the law of an open loop's arrivals.
type Distribution string

// The distributions.
const (
	Constant Distribution = "constant"
	Poisson  Distribution = "poisson"
)

// Search says in which order levels are measured.
type Search string

// The searches.
const (
	SearchNone   Search = "none"   // one level
	SearchLinear Search = "linear" // upwards; to the first that misses the latency limit, where there is one
	SearchBinary Search = "binary" // for the highest within the latency limit
)

// Rule says when a level has been measured for long enough.
type Rule string

// The rules.
const (
	RulePrecision Rule = "precision" // when throughput and the wanted latency are known with the asked precision
	RuleStability Rule = "stability" // perf_analyzer's: when three windows in a row agree
)

// Levels are concurrencies or request rates from Start in steps of Step: up to End, or Open, until the limit is missed.
type Levels struct {
	Start, End, Step float64
	Open             bool
}

// Stop is a stop rule with its parameters.
type Stop struct {
	Rule      Rule
	Precision float64       // RulePrecision: half-width of the 95 % intervals, relative to the value
	Budget    time.Duration // RulePrecision: longest time in windows, per level
	Stability float64       // RuleStability: by how much the largest of three may exceed the least, relative
	Trials    int           // RuleStability: most windows, per level
	Window    time.Duration // length of a window
	Requests  int           // > 0: a window ends when so many requests have completed or failed; Window is then of no account
}

// Settings say what is measured and how, as far as a report needs it.
type Settings struct {
	Program  string // name and version of the program, for files that others read
	Machine  string // of the load generator, for people
	Model    string
	Version  string // of the model as asked for; empty: the server's choice
	URL      string
	Protocol string // "http" or "grpc"

	Mode         Mode
	Distribution Distribution // ModeRate
	Levels       Levels
	Search       Search
	LatencyLimit time.Duration // 0: none
	Percentile   int           // whose latency is judged, 1..99; 0: the mean
	Batch        int           // client batch, ≥ 1
	Stop         Stop

	RequestCount   int // > 0: one window of exactly so many requests, no stop rule
	WarmUpRequests int // > 0: warm up with so many instead of until the load is steady

	Streams, Steps int  // of the user's JSON data; 0: none was given
	Async          bool // as asked for; requests are sent in the same way either way
	Streaming      bool // gRPC
	Decoupled      bool // the model gives any number of responses per request
	Cache          bool // the model's answers are cached by the server
	Statistics     bool // the server has them
	Metrics        bool // its metrics page is read
	PID            int  // of the engine on this machine; 0 unknown

	Seed uint64 // of the inputs, and of the first random schedule: each further level has the next one
}

// Verdict says why a level's measurement ended.
type Verdict string

// The verdicts.
const (
	VerdictPrecise     Verdict = "precise"     // the asked precision was reached
	VerdictStable      Verdict = "stable"      // three windows agreed
	VerdictCounted     Verdict = "counted"     // the asked number of requests was sent
	VerdictBudget      Verdict = "budget"      // the budget was used up before the precision was reached
	VerdictUnstable    Verdict = "unstable"    // no three windows agreed within the trials
	VerdictUnjudged    Verdict = "unjudged"    // fewer windows were asked for than it takes to tell
	VerdictOverLimit   Verdict = "over limit"  // the latency is above the limit beyond doubt
	VerdictInterrupted Verdict = "interrupted" // by the user, or by the run's deadline
	VerdictFailed      Verdict = "failed"      // the server did not serve
)

// Limit says how a level's latency lies to the limit.
type Limit string

// The relations of a latency to the limit.
const (
	LimitMet          Limit = "met"           // the whole 95 % interval is within
	LimitLikelyMet    Limit = "likely met"    // the value is within, the interval reaches above
	LimitLikelyMissed Limit = "likely missed" // the value is above, the interval reaches below
	LimitMissed       Limit = "missed"        // the whole interval is above
)

// Within reports whether the measured value lies within the limit.
func (l Limit) Within() bool { return l == LimitMet || l == LimitLikelyMet }

// Level is what was measured at one load.
type Level struct {
	Load  measure.Load
	Seed  uint64    // of the schedule, where it is random
	Begin time.Time // of the level's load: the windows' Start counts from here

	WarmUp      time.Duration
	Measurement measure.Measurement // the windows that count, with what server and machine say of each
	Verdict     Verdict
	Limit       Limit         // empty: there is none, or nothing to compare with it
	Unfinished  int           // requests that were due or sent and not answered when the last window ended
	Waited      time.Duration // how long the oldest of them had waited then
	Resent      int           // requests that were sent once more, since the server had closed their connection; also those of the warm-up

	Composing []Composing // the models that an ensemble calls
	Others    []Other     // the loads on other models meanwhile
	Warnings  []string
	Failure   string // empty unless the verdict is failed
}

// Composing is what the server's statistics say of a model that an ensemble calls, over the windows that count.
type Composing struct {
	Model, Version string
	Server         measure.ServerStats
}

// Other is the load on another model while a level was measured: its windows that lie within those of the level.
type Other struct {
	Model       string
	Load        measure.Load
	Measurement measure.Measurement
}

// Report is what a run yielded.
type Report struct {
	Settings    Settings
	Levels      []Level // in the order in which they were measured; a binary search measures the one it ends at twice
	Best        int     // index of the level with the most throughput within the latency limit; -1: none, or no limit
	Warnings    []string
	Interrupted bool
}

// Composing lists the models that an ensemble calls, each with what it did at the first level at which it was called.
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

// Latency is the estimate of the latency that the settings name, in seconds: a percentile or the mean. False when no
// request completed.
func (s Settings) Latency(m measure.Measurement) (measure.Estimate, bool) {
	if s.Percentile == 0 {
		return m.Estimate(measure.LatencyAvg)
	}
	return m.Percentile(s.quantile())
}

// Observer follows a run. Its methods are called by one goroutine at a time and must not block.
type Observer interface {
	// Live is told when a level begins, and after each window.
	Live(Progress)
	// Measured is told when a level has been measured.
	Measured(Level)
}

// Progress is where a level's measurement stands.
type Progress struct {
	Load       measure.Load
	Elapsed    time.Duration // since the run's beginning
	Window     int           // windows that are complete, joined ones each; 0: the load is warming up
	Throughput float64       // infer/s, like the rest of the last window
	P50, P99   time.Duration
	InFlight   float64 // mean
	Errors     int     // in all windows of the level, like the rest
	Late       int
	Dropped    int
}
