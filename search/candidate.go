package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Setting is one knob's value in a candidate.
type Setting struct {
	Knob  string `json:"knob"`
	Value Value  `json:"value"`
}

// Candidate is one configuration: a value for each knob of the space, in the space's order. It is
// immutable. The zero value is the default configuration, which sets no knob.
//
// The candidate of several models has a configuration of each: the model's name stands before its
// knobs, as in encoder.instance_count. Of and Joined take it apart and put it together.
type Candidate struct{ settings []Setting }

// NewCandidate makes a candidate from settings, whose order it keeps.
func NewCandidate(settings ...Setting) Candidate {
	return Candidate{append([]Setting(nil), settings...)}
}

// IsDefault reports whether the candidate is the default configuration.
func (c Candidate) IsDefault() bool { return len(c.settings) == 0 }

// Settings returns a copy of the candidate's settings.
func (c Candidate) Settings() []Setting { return append([]Setting(nil), c.settings...) }

// Get returns the value of a knob; false if the candidate does not set it.
func (c Candidate) Get(knob string) (Value, bool) {
	for _, s := range c.settings {
		if s.Knob == knob {
			return s.Value, true
		}
	}
	return "", false
}

// With returns the candidate with one knob set to another value. A new knob is appended.
func (c Candidate) With(knob string, v Value) Candidate {
	settings := c.Settings()
	for i := range settings {
		if settings[i].Knob == knob {
			settings[i].Value = v
			return Candidate{settings}
		}
	}
	return Candidate{append(settings, Setting{knob, v})}
}

// defaultKey is the key of the default configuration and of its pool.
const defaultKey = "default"

// Key is the candidate's canonical text, equal exactly for equal candidates of one space:
// "default", or "precision=fp32 intra_op_threads=2 …".
func (c Candidate) Key() string { return c.key(func(Setting) bool { return true }) }

// PoolKey is the part of Key that determines the engine process: every knob but the batcher's. It
// is "default" for candidates that change batcher knobs only: they run in the default's process.
func (c Candidate) PoolKey() string {
	return c.key(func(s Setting) bool {
		scope, known := KnobScope(s.Knob)
		return !known || scope != ScopeBatcher
	})
}

// ArtifactKey is the part of Key that determines the artifact: the model file, ONNX Runtime's build
// and the execution provider.
func (c Candidate) ArtifactKey() string {
	return c.key(func(s Setting) bool {
		scope, known := KnobScope(s.Knob)
		return known && scope == ScopeArtifact
	})
}

// String is Key.
func (c Candidate) String() string { return c.Key() }

func (c Candidate) key(keep func(Setting) bool) string {
	most := 0 // bytes
	for _, s := range c.settings {
		most += len(s.Knob) + len(s.Value) + len("= ")
	}
	var text strings.Builder
	text.Grow(most) // keys are asked for in all inner loops
	for _, s := range c.settings {
		if !keep(s) {
			continue
		}
		if text.Len() > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(s.Knob)
		text.WriteByte('=')
		text.WriteString(string(s.Value))
	}
	if text.Len() == 0 {
		return defaultKey
	}
	return text.String()
}

// MarshalJSON writes the settings as a list, [] for the default.
func (c Candidate) MarshalJSON() ([]byte, error) {
	if c.settings == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(c.settings)
}

// UnmarshalJSON reads the output of MarshalJSON. A setting with another field, or without a knob,
// is an error, since ignoring it would give another configuration.
func (c *Candidate) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var settings []Setting
	if err := decoder.Decode(&settings); err != nil {
		return fmt.Errorf("cannot read candidate: %w", err)
	}
	for _, s := range settings {
		if s.Knob == "" {
			return errors.New("cannot read candidate: a setting has no knob")
		}
	}
	c.settings = nil
	if len(settings) > 0 {
		c.settings = settings
	}
	return nil
}
