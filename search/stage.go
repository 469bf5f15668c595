package search

import (
	"slices"

	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// A campaign's gain has two parts. One is from the artifact and the session (precision, runtime,
// execution provider, session options). The other is from instances and batching. The first stage
// is a configuration that differs from the default only in the first part. It shows that part's
// share of the gain.

// FirstStage returns the candidate with c's settings of the artifact and the session that differ
// from the default. It omits those for instances and batching. It is the default if nothing is
// left.
func (s Space) FirstStage(c Candidate) Candidate {
	var kept []Setting
	for _, setting := range c.settings {
		if isFirstStage(setting.Knob) && !s.IsAsDefault(c, setting) {
			kept = append(kept, setting)
		}
	}
	return Candidate{kept}
}

// IsAsDefault reports whether c is the same configuration without one of its settings, since that has the default's
// value.
func (s Space) IsAsDefault(c Candidate, setting Setting) bool {
	base, known := s.base(setting.Knob)
	return known && base == setting.Value && !isUnlikeDefault(c, setting.Knob)
}

// InFirstStage reports whether c has the default's instances and batching. It is true for the
// default.
func (s Space) InFirstStage(c Candidate) bool {
	return !slices.ContainsFunc(c.settings, func(setting Setting) bool { return !isFirstStage(setting.Knob) && !s.IsAsDefault(c, setting) })
}

// Has reports whether a candidate lies in the space. The space must list the value of each of its
// knobs: the candidate's, or the default's if the candidate does not set it. Nothing else may
// differ from the default. A first stage may lie outside. It has the default's instances and
// batching, which the space need not list. Of several models, each may be in its default
// configuration.
func (s Space) Has(c Candidate) bool {
	if s.IsSeveral() {
		return s.hasParts(c)
	}
	for _, k := range s.Knobs {
		if !slices.Contains(k.Values, s.Value(c, k.Name)) {
			return false
		}
	}
	return !slices.ContainsFunc(c.settings, func(setting Setting) bool {
		base, known := s.base(setting.Knob)
		isListed := slices.ContainsFunc(s.Knobs, func(k Knob) bool { return k.Name == setting.Knob })
		return !isListed && (!known || base != setting.Value)
	})
}

// hasParts is Has for several models.
func (s Space) hasParts(c Candidate) bool {
	for _, k := range s.Server {
		if !slices.Contains(k.Values, s.Value(c, k.Name)) {
			return false
		}
	}
	return !slices.ContainsFunc(s.Parts, func(p Part) bool {
		own := c.Of(p.Model)
		return !own.IsDefault() && !p.Space.Has(own)
	})
}

// isFirstStage reports whether a knob belongs to the artifact or the session.
func isFirstStage(knob string) bool {
	scope, known := KnobScope(knob)
	return known && (scope == ScopeArtifact || scope == ScopeEngine)
}

// isUnlikeDefault reports whether an unset knob has another meaning with c's other settings than in
// the default. Idle threads spin by default, except beside a provider with its own pool
// (modelconfig.Options.Given).
func isUnlikeDefault(c Candidate, knob string) bool {
	model, knob := SplitKnob(knob)
	of, _ := c.Of(model).Get(KnobExecutionProvider)
	return knob == sessionoption.AllowSpinning && provider.Of(string(of)).HasPoolBeside()
}
