package search

import (
	"fmt"
	"slices"
	"strings"

	"tuner/internal/words"
	"tuner/model/mix"
	"tuner/model/precision/recipe"
	"tuner/ort/provider"
)

// Describe names the candidate in a few words for people: "2 instances × 1 thread, batch 16, int8".
// It omits usual values (fp32, the cpu execution provider, no delay), so unlike Key it does not
// identify the candidate.
func (c Candidate) Describe() string {
	if c.IsDefault() {
		return "default"
	}
	if models := c.models(); len(models) > 0 {
		return c.describeParts(models)
	}
	parts := []string{}
	if text := c.describePool(); text != "" {
		parts = append(parts, text)
	}
	for _, s := range c.settings {
		if text := describeSetting(s); text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return c.Key()
	}
	return strings.Join(parts, ", ")
}

// models lists the models whose knobs the candidate sets, in the order of the settings; none for one
// model.
func (c Candidate) models() []string {
	var models []string
	for _, s := range c.settings {
		if model, _ := SplitKnob(s.Knob); model != "" && !slices.Contains(models, model) {
			models = append(models, model)
		}
	}
	return models
}

// describeParts names the configurations of several models: "encoder 2 instances × 1 thread, batch
// 16; ranker default". Models in their default configuration are left out.
func (c Candidate) describeParts(models []string) string {
	var parts []string
	if server := c.Of(""); !server.IsDefault() {
		parts = append(parts, server.Describe())
	}
	for _, model := range models {
		parts = append(parts, model+" "+c.Of(model).Describe())
	}
	return strings.Join(parts, "; ")
}

// describePool joins instances and threads: "2 instances × 1 thread".
func (c Candidate) describePool() string {
	var parts []string
	for _, k := range []struct{ knob, one string }{{KnobInstanceCount, "instance"}, {KnobIntraOpThreads, "thread"}} {
		v, ok := c.Get(k.knob)
		switch {
		case !ok:
		case k.knob == KnobIntraOpThreads && v == "0":
			parts = append(parts, "all cores")
		case v == "1":
			parts = append(parts, "1 "+k.one)
		default:
			parts = append(parts, string(v)+" "+k.one+"s")
		}
	}
	return strings.Join(parts, " × ")
}

// describeSetting names a setting other than instances and threads; "" for a usual value.
func describeSetting(s Setting) string {
	switch s.Knob {
	case KnobInstanceCount, KnobIntraOpThreads:
		return ""
	case KnobMaxBatchSize:
		if s.Value == "0" {
			return "no batching"
		}
		return "batch " + string(s.Value)
	case KnobMaxQueueDelay:
		d, err := s.Value.Duration()
		if err != nil || d == 0 {
			return ""
		}
		return "delay " + words.Duration(d)
	case KnobPreferredBatchSize:
		if s.Value == "[]" {
			return ""
		}
		return "preferred " + string(s.Value)
	case KnobIsolation:
		if s.Value == IsolationShared {
			return "cores shared"
		}
		return "cores divided " + strings.TrimPrefix(string(s.Value), "cores:")
	case KnobPadding:
		return mix.DescribePadding(string(s.Value))
	case KnobPrecision:
		return unless(s.Value, recipe.Original)
	case KnobExecutionProvider:
		return unless(s.Value, provider.CPU)
	}
	return fmt.Sprintf("%s %s", s.Knob, s.Value)
}

// unless returns the value's text, or "" if it is the usual one.
func unless(v Value, usual string) string {
	if string(v) == usual {
		return ""
	}
	return string(v)
}
