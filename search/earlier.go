package search

import (
	"slices"
	"time"
)

// Earlier is what a campaign before this one measured of the same model, with the same requests and the same default
// configuration. It is neither a trial of this campaign nor one of its results.
type Earlier struct {
	From    string    `json:"from"` // its output folder, for people
	Created time.Time `json:"created"`
	Same    bool      `json:"same"` // machine, ONNX Runtime and protocol as now: the events are data; else they only help to predict
	Events  []Event   `json:"events"`
}

// Adopt returns the candidate of this space that is the same configuration as one of another space with the same default
// configuration: a knob that only one of the spaces has is the default's where it is left alone. It is false where there is
// none; whether the values are among the knobs' is not looked at.
func (s Space) Adopt(c Candidate) (Candidate, bool) {
	if c.IsDefault() {
		return c, true
	}
	for _, setting := range c.settings {
		isKnob := slices.ContainsFunc(s.Knobs, func(k Knob) bool { return k.Name == setting.Knob })
		base, known := s.Facts.base(setting.Knob)
		if !isKnob && (!known || base != setting.Value || isUnlikeDefault(c, setting.Knob)) {
			return Candidate{}, false
		}
	}
	var settings []Setting
	for _, k := range s.Knobs {
		v, set := c.Get(k.Name)
		if !set && !isUnlikeDefault(c, k.Name) {
			v, set = s.Facts.base(k.Name)
		}
		if set {
			settings = append(settings, Setting{k.Name, v})
		}
	}
	adopted, illegal := s.Canonical(Candidate{settings})
	return adopted, illegal == ""
}
