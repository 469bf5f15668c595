package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Part is the traffic of one of several models at scale 1. Exactly one of concurrency and request
// rate is set.
type Part struct {
	Model       string  `json:"model"`                                                  // name under which the model is served
	Concurrency int     `json:"concurrency,omitempty" jsonschema:"minimum=1"`           // requests in flight, ≥ 1
	RequestRate float64 `json:"request_rate,omitempty" jsonschema:"exclusiveMinimum=0"` // requests per second, > 0
	BatchSize   int     `json:"batch_size" jsonschema:"minimum=1"`                      // client batch: inferences per request, ≥ 1
}

// At returns the share's load at a scale.
func (s Part) At(scale float64) Load {
	return Load{Concurrency: s.Concurrency, RequestRate: s.RequestRate, BatchSize: s.BatchSize}.Times(scale)
}

// check refuses a share without a model, and one that is no load.
func (s Part) check() error {
	switch {
	case s.Model == "":
		return errors.New("a share of a load has no model")
	case s.BatchSize < 1 || (s.Concurrency > 0) == (s.RequestRate > 0) || s.Concurrency < 0 || s.RequestRate < 0 || math.IsInf(s.RequestRate, 0):
		return fmt.Errorf("concurrency %d, request rate %g and client batch %d of model %q do not make a load",
			s.Concurrency, s.RequestRate, s.BatchSize, s.Model)
	}
	return nil
}

// String returns the share for people: "encoder 120 requests/s".
func (s Part) String() string { return s.Model + " " + s.At(1).String() }

// Mix is the traffic of several models at scale 1: their parts as the text of a JSON list, which NewMix
// makes. As a text it is comparable, and so are loads. "" has no model.
type Mix string

// NewMix makes a mix from the shares of models, whose order it keeps. The error names a share that
// is no load, or a model that has two.
func NewMix(shares ...Part) (Mix, error) {
	seen := map[string]bool{}
	for _, s := range shares {
		if err := s.check(); err != nil {
			return "", err
		}
		if seen[s.Model] {
			return "", fmt.Errorf("model %q has two shares of a load", s.Model)
		}
		seen[s.Model] = true
	}
	if len(shares) == 0 {
		return "", nil
	}
	text, err := json.Marshal(shares)
	if err != nil {
		return "", fmt.Errorf("cannot encode the shares of a load: %w", err)
	}
	return Mix(text), nil
}

// IsZero reports whether the mix has no model.
func (m Mix) IsZero() bool { return m == "" }

// Parts lists the models' shares, in their order.
func (m Mix) Parts() []Part {
	var shares []Part
	if m != "" && json.Unmarshal([]byte(m), &shares) != nil {
		panic("measure: a mix has a text that it did not make")
	}
	return shares
}

// String returns the mix for people: "encoder 120 requests/s, ranker 900 requests/s".
func (m Mix) String() string {
	var parts []string
	for _, s := range m.Parts() {
		parts = append(parts, s.String())
	}
	return strings.Join(parts, ", ")
}

// MarshalJSON writes the shares as a list.
func (m Mix) MarshalJSON() ([]byte, error) {
	if m == "" {
		return []byte("[]"), nil
	}
	return []byte(m), nil
}

// UnmarshalJSON reads the output of MarshalJSON. A share with an unknown field, or one that is no
// load, is an error.
func (m *Mix) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	var shares []Part
	if err := decoder.Decode(&shares); err != nil {
		return fmt.Errorf("cannot read the shares of a load: %w", err)
	}
	mix, err := NewMix(shares...)
	if err != nil {
		return fmt.Errorf("cannot read the shares of a load: %w", err)
	}
	*m = mix
	return nil
}
