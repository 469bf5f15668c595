package search

import (
	"slices"
	"time"
)

// Earlier holds the measurements of an earlier campaign with the same model, requests and default
// configuration. They are neither trials of this campaign nor its results.
type Earlier struct {
	From    string    `json:"from"`    // its output folder, for people
	Created time.Time `json:"created"` // when that campaign began
	// the machine, ONNX Runtime and protocol are the same: the events count as data; otherwise
	// they only improve predictions
	Same   bool    `json:"same"`
	Events []Event `json:"events"` // its trials
}

// Adopt converts a candidate of another space with the same default configuration to the equal
// candidate of this space. A knob that only one space has takes the default's value where it is not
// set. It returns false without an equal candidate. It does not check whether the space lists the
// values.
func (s Space) Adopt(c Candidate) (Candidate, bool) {
	if c.IsDefault() {
		return c, true
	}
	for _, setting := range c.settings {
		isKnob := slices.ContainsFunc(s.Knobs, func(k Knob) bool { return k.Name == setting.Knob })
		if !isKnob && !s.IsAsDefault(c, setting) {
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
