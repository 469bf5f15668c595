package measure

import "time"

// Measurement is what one trial yielded: windows at one load on one engine launch, or the reason why there are none; of a service trial also that
// why there are no more.
type Measurement struct {
	Windows []Window `json:"windows,omitempty"`
	Launch  int      `json:"launch"` // ordinal of the engine launch within the campaign, from 1
	Memory  int64    `json:"memory"` // bytes, peak resident set of the engine process during the trial; 0 unknown
	// Footprint is what the trial's process held before its load; zero where the process was not launched for the trial, or is not known.
	Footprint Footprint `json:"footprint,omitzero"`
	Failure   *Failure  `json:"failure,omitempty"` // nil when the trial succeeded
	Cut       bool      `json:"cut,omitempty"`     // the last window was ended at its look, and no other followed: it could no longer matter
	Times     Times     `json:"times"`
}

// Footprint is the memory of a fresh engine process that has executed one batch on every instance, and nothing else.
type Footprint struct {
	Batch int   `json:"batch"` // rows of the batch, the configuration's largest; 1 where the model does not batch
	Bytes int64 `json:"bytes"` // peak resident set, loading of the model included
}

// Failure says why a trial yielded no figures. It is a result, not an error of the campaign.
type Failure struct {
	Stage  Stage  `json:"stage"`
	Reason string `json:"reason"` // for people: what happened, with the engine's last words
}

// Stage is the part of a trial that failed.
type Stage string

// The stages of a trial.
const (
	StageStart  Stage = "start"         // the engine process did not become ready
	StageLoad   Stage = "load"          // the model did not load with this configuration
	StageCrash  Stage = "crash"         // the engine process ended by itself
	StageHang   Stage = "hang"          // no answer before the deadline
	StageMemory Stage = "out of memory" // the engine was killed for memory, or exceeded the limit
	StageErrors Stage = "errors"        // every request of a window failed
)

// Times says where a trial's wall time went.
type Times struct {
	Launch      time.Duration `json:"launch"`      // starting the engine process until it was ready
	Reconfigure time.Duration `json:"reconfigure"` // loading the model with another configuration
	WarmUp      time.Duration `json:"warm_up"`
	Windows     time.Duration `json:"windows"`
}

// Add returns the sum of two accounts.
func (t Times) Add(u Times) Times {
	return Times{t.Launch + u.Launch, t.Reconfigure + u.Reconfigure, t.WarmUp + u.WarmUp, t.Windows + u.Windows}
}

// Total is the sum of the parts.
func (t Times) Total() time.Duration { return t.Launch + t.Reconfigure + t.WarmUp + t.Windows }
