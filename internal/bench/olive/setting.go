package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tuner/search"
)

// setting is a session of ONNX Runtime as the judge opens it. What is zero stays as ONNX Runtime has it.
type setting struct {
	Model          string            `json:"model"` // file
	Precision      string            `json:"-"`
	IntraOpThreads int               `json:"intra_op_threads,omitempty"`
	InterOpThreads int               `json:"inter_op_threads,omitempty"`
	Parallel       bool              `json:"parallel,omitempty"`
	Graph          string            `json:"graph_optimization,omitempty"` // disable, basic, extended, all
	MemoryArena    *bool             `json:"memory_arena,omitempty"`
	MemoryPattern  *bool             `json:"memory_pattern,omitempty"`
	Entries        map[string]string `json:"entries,omitempty"`
}

// String names the setting for people; "default" for one that sets nothing.
func (s setting) String() string {
	var parts []string
	add := func(is bool, text string) {
		if is {
			parts = append(parts, text)
		}
	}
	add(s.Precision != "" && s.Precision != "fp32", s.Precision)
	add(s.IntraOpThreads > 0, fmt.Sprintf("intra %d", s.IntraOpThreads))
	add(s.InterOpThreads > 0, fmt.Sprintf("inter %d", s.InterOpThreads))
	add(s.Parallel, "parallel")
	add(s.Graph != "", "graph "+s.Graph)
	add(s.MemoryArena != nil && !*s.MemoryArena, "no arena")
	add(s.MemoryPattern != nil && !*s.MemoryPattern, "no pattern")
	for _, key := range slices.Sorted(maps.Keys(s.Entries)) {
		add(true, key+"="+s.Entries[key])
	}
	if len(parts) == 0 {
		return "default"
	}
	return strings.Join(parts, ", ")
}

// ofCandidate is tuner's answer for the judge; files are the model files by precision.
func ofCandidate(c search.Candidate, files map[string]string) (setting, error) {
	s := setting{Precision: "fp32", Entries: map[string]string{}}
	for _, one := range c.Settings() {
		if err := s.set(one.Knob, string(one.Value)); err != nil {
			return s, err
		}
	}
	s.Model = files[s.Precision]
	if s.Model == "" {
		return s, fmt.Errorf("cannot judge %s: the sweep names no file of %s", c, s.Precision)
	}
	return s, nil
}

// set applies one knob. "default" leaves what it concerns alone.
func (s *setting) set(knob, value string) (err error) {
	switch knob {
	case search.KnobPrecision:
		s.Precision = value
	case search.KnobIntraOpThreads:
		s.IntraOpThreads, err = strconv.Atoi(value)
	case search.KnobInterOpThreads:
		s.InterOpThreads, err = strconv.Atoi(value)
	case search.KnobExecutionMode:
		s.Parallel = value == "parallel"
	case search.KnobGraphOptimization:
		s.Graph = value
	case search.KnobMemoryArena:
		s.MemoryArena, err = truth(value)
	case search.KnobMemoryPattern:
		s.MemoryPattern, err = truth(value)
	case search.KnobAllowSpinning:
		digit := map[string]string{"true": "1", "false": "0"}[value]
		s.Entries["session.intra_op.allow_spinning"], s.Entries["session.inter_op.allow_spinning"] = digit, digit
	case search.KnobExecutionProvider, search.KnobRuntime:
		if value != "cpu" && !strings.HasPrefix(value, "cpu@") {
			return fmt.Errorf("cannot judge %s %q: the judge has the CPU alone", knob, value)
		}
	default:
		if !strings.HasPrefix(knob, "session.") {
			return fmt.Errorf("cannot judge the knob %q: the judge does not know it", knob)
		}
		s.Entries[knob] = value
	}
	if err != nil {
		return fmt.Errorf("cannot judge %s %q: %w", knob, value, err)
	}
	return nil
}

func truth(text string) (*bool, error) {
	is, err := strconv.ParseBool(text)
	return &is, err
}

// oliveSettings are the inference settings that Olive writes.
type oliveSettings struct {
	SessionOptions struct {
		ExecutionMode *int              `json:"execution_mode"`
		Graph         *int              `json:"graph_optimization_level"`
		IntraOp       int               `json:"intra_op_num_threads"`
		InterOp       int               `json:"inter_op_num_threads"`
		Entries       map[string]string `json:"extra_session_config"`
	} `json:"session_options"`
}

// ofOlive is Olive's answer for the judge.
func ofOlive(settings oliveSettings, model, precision string) setting {
	o := settings.SessionOptions
	s := setting{Model: model, Precision: precision, IntraOpThreads: o.IntraOp, InterOpThreads: o.InterOp, Entries: o.Entries}
	s.Parallel = o.ExecutionMode != nil && *o.ExecutionMode == 1
	if o.Graph != nil {
		s.Graph = map[int]string{0: "disable", 1: "basic", 2: "extended", 99: "all"}[*o.Graph]
	}
	return s
}
