package measure

import (
	"regexp"
	"slices"
	"time"
)

// Measurement is the result of one trial: windows at one load on one engine launch, or the failure
// instead. A service trial may have both: windows, and the failure that ended it.
type Measurement struct {
	// windows with their figures. Those of several models between the same edges stand together
	Windows []Window `json:"windows,omitempty"`
	Launch  int      `json:"launch"` // ordinal of the engine launch within the campaign, from 1
	// peak resident set of the engine process during the trial, in bytes; 0: unknown
	Memory int64 `json:"memory"`
	// Footprint is the memory of the trial's process before its load. It is zero if the process was
	// not launched for the trial, or if its memory is unknown.
	Footprint Footprint `json:"footprint,omitzero"`
	Failure   *Failure  `json:"failure,omitempty"` // why there are no figures; absent when the trial succeeded
	// the last window ended after its first part and no other followed, since it could not change
	// the result
	Cut   bool  `json:"cut,omitempty"`
	Times Times `json:"times"` // parts of the trial's wall time
	// traffic that was offered to several models, as a multiple of the profile's; 0: one model
	Scale float64 `json:"scale,omitempty"`
}

// Models lists the models whose windows the measurement has, in their order; none for one model.
func (m Measurement) Models() []string {
	var models []string
	for i := range m.Windows {
		if name := m.Windows[i].Model; name != "" && !slices.Contains(models, name) {
			models = append(models, name)
		}
	}
	return models
}

// Of returns the measurement with the windows of one of several models.
func (m Measurement) Of(model string) Measurement {
	var own []Window
	for i := range m.Windows {
		if m.Windows[i].Model == model {
			own = append(own, m.Windows[i])
		}
	}
	m.Windows = own
	return m
}

// Alone returns the measurement with windows that name no model, as if it were of one.
func (m Measurement) Alone() Measurement {
	m.Windows = slices.Clone(m.Windows)
	for i := range m.Windows {
		m.Windows[i].Model = ""
	}
	return m
}

// Whole returns the measurement with one window between two edges: those of the first model. The
// figures of process and machine are in all, and must count once. Without models it is the
// measurement itself.
func (m Measurement) Whole() Measurement {
	if len(m.Windows) == 0 || m.Windows[0].Model == "" {
		return m
	}
	return m.Of(m.Windows[0].Model)
}

// Footprint is the memory of a fresh engine process after one batch on every instance.
type Footprint struct {
	// rows of the batch: the configuration's maximum, 1 if the model does not batch
	Batch int   `json:"batch"`
	Bytes int64 `json:"bytes"` // peak resident set, including the loading of the model, in bytes
}

// Failure is the reason why a trial yielded no figures. It is a result of the campaign, not an
// error.
type Failure struct {
	Stage  Stage  `json:"stage"`           // part of the trial that failed
	Reason string `json:"reason"`          // for people: the event, with the last output of the engine
	Model  string `json:"model,omitempty"` // of several models: the one that failed; "": all, or unknown
}

// measuredText matches a figure with its unit in the reason of a failure.
var measuredText = regexp.MustCompile(`[0-9]+(\.[0-9]+)? (kB|MB|GB|ms|s)\b`)

// Cause returns the failure without the figures that were measured, such as the memory that an
// engine used. Failures of one cause differ in nothing else.
func (f Failure) Cause() Failure {
	f.Reason = measuredText.ReplaceAllString(f.Reason, "… $2")
	return f
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

// Times splits the wall time of a trial into its parts.
type Times struct {
	// from the start of the engine process until it was ready
	Launch      time.Duration `json:"launch"`
	Reconfigure time.Duration `json:"reconfigure"` // loading the model with another configuration
	WarmUp      time.Duration `json:"warm_up"`     // load before the first window
	Windows     time.Duration `json:"windows"`     // all windows
	// wait for the answers to requests of the last window; 0 in older files
	Drain time.Duration `json:"drain,omitempty"`
}

// Add returns the sum of both, part by part.
func (t Times) Add(u Times) Times {
	return Times{t.Launch + u.Launch, t.Reconfigure + u.Reconfigure, t.WarmUp + u.WarmUp, t.Windows + u.Windows, t.Drain + u.Drain}
}

// Total returns the sum of the parts.
func (t Times) Total() time.Duration { return t.Launch + t.Reconfigure + t.Windows + t.Outside() }

// Outside returns the time of the load outside of windows.
func (t Times) Outside() time.Duration { return t.WarmUp + t.Drain }
