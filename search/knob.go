// Package search decides the next measurement. A Space holds the knobs and their values. A
// Candidate is one choice for each knob. A Strategy answers Ask with the next Action and learns
// from Tell.
//
// The package is pure: no clock, no I/O, no goroutine, no global randomness. The next action is a
// function of settings, seed and events. So a campaign resumes by replaying its journal, and a
// strategy is evaluated in seconds against recorded or synthetic landscapes.
package search

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// Scope is the cost class of a knob's change, from most to least expensive.
type Scope int

// The scopes of knobs.
const (
	ScopeArtifact Scope = iota // another model file or ONNX Runtime build: conversion once, new process
	ScopeEngine                // session options: new process
	ScopePool                  // instances: new process
	ScopeBatcher               // batcher settings: reconfigured by the server's API
)

// The knobs, by their names in YAML and output. Package sessionoption lists the session options
// among them.
const (
	KnobExecutionProvider  = "execution_provider"
	KnobRuntime            = "runtime"
	KnobPrecision          = "precision"
	KnobIntraOpThreads     = sessionoption.IntraOpThreads // the search computes with it
	KnobInstanceCount      = "instance_count"
	KnobMaxBatchSize       = "max_batch_size"
	KnobPreferredBatchSize = "preferred_batch_size"
	KnobMaxQueueDelay      = "max_queue_delay"
	// KnobPadding is how clients pad the requests of a mix (mix.ParsePadding). No server knows
	// it.
	KnobPadding = "padding"
	// KnobInstanceGroup is the field of ModelConfig for all instances, if the space has it instead of
	// KnobInstanceCount.
	KnobInstanceGroup = "instance_group"
	// KnobIsolation is how several models share the cores: IsolationShared, or each on cores of its
	// own. It is a knob of the server.
	KnobIsolation = "isolation"
)

// IsolationShared is the value of KnobIsolation for models that all compute on all cores.
const IsolationShared Value = "shared"

// KnobScope returns the scope of a named knob; false for an unknown name. `session.*` entries and
// options of execution providers are engine knobs. The knob of one of several models has the scope
// of the same knob of a single one.
func KnobScope(name string) (Scope, bool) {
	_, knob := SplitKnob(name)
	return scopeOf(knob)
}

// scopeOf is KnobScope for a name without a model.
func scopeOf(name string) (Scope, bool) {
	switch name {
	case KnobIsolation:
		return ScopePool, true
	case KnobExecutionProvider, KnobRuntime, KnobPrecision:
		return ScopeArtifact, true
	case KnobInstanceCount, sessionoption.ShareSession:
		return ScopePool, true
	case KnobMaxBatchSize, KnobPreferredBatchSize, KnobMaxQueueDelay, KnobPadding:
		return ScopeBatcher, true
	}
	if _, _, isOption := ProviderOption(name); isOption || sessionoption.IsKnob(name) {
		return ScopeEngine, true
	}
	return 0, false
}

// ProviderOption splits the name of a knob for an option of an execution provider:
// "openvino.num_streams". It returns false for every other name.
func ProviderOption(name string) (of, option string, ok bool) {
	of, option, found := strings.Cut(name, ".")
	if !found || len(provider.Of(of).Options) == 0 {
		return "", "", false
	}
	return of, option, option != ""
}

// Knob is one dimension of a space: a name and the values to choose from, in the user's order.
type Knob struct {
	Name   string
	Scope  Scope
	Values []Value
}

// Value is a knob's setting in canonical text: "cpu", "2", "true", "100us", "[4,8]".
type Value string

// IntValue, BoolValue, DurationValue and IntsValue make canonical values.
func IntValue(n int) Value { return Value(strconv.Itoa(n)) }

// BoolValue makes "true" or "false".
func BoolValue(b bool) Value { return Value(strconv.FormatBool(b)) }

// DurationValue prints the duration in whole microseconds ("0us", "100us", "2000us"): Triton's
// resolution.
func DurationValue(d time.Duration) Value { return Value(fmt.Sprintf("%dus", d.Microseconds())) }

// IntsValue makes "[4,8]"; the empty list is "[]".
func IntsValue(ns []int) Value {
	parts := make([]string, len(ns))
	for i, n := range ns {
		parts[i] = strconv.Itoa(n)
	}
	return Value("[" + strings.Join(parts, ",") + "]")
}

// Int reads an integer value.
func (v Value) Int() (int, error) {
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return 0, fmt.Errorf("cannot read %q as an integer", string(v))
	}
	return n, nil
}

// Bool reads a boolean value.
func (v Value) Bool() (bool, error) {
	b, err := strconv.ParseBool(string(v))
	if err != nil {
		return false, fmt.Errorf("cannot read %q as a boolean", string(v))
	}
	return b, nil
}

// Duration reads a duration value.
func (v Value) Duration() (time.Duration, error) {
	d, err := time.ParseDuration(string(v))
	if err != nil {
		return 0, fmt.Errorf("cannot read %q as a duration", string(v))
	}
	return d, nil
}

// Ints reads a list of integers.
func (v Value) Ints() ([]int, error) {
	text, ok := strings.CutPrefix(string(v), "[")
	text, closed := strings.CutSuffix(text, "]")
	if !ok || !closed {
		return nil, fmt.Errorf("cannot read %q as a list of integers", string(v))
	}
	if text == "" {
		return nil, nil
	}
	var ns []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := Value(part).Int()
		if err != nil {
			return nil, err
		}
		ns = append(ns, n)
	}
	return ns, nil
}
