package search

import (
	"slices"

	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// A campaign's gain has two parts: what serves the model (precision, runtime, execution provider, session options), and how
// requests come to it (instances, batching). The first stage is a configuration in which only the former differ from the
// default; it shows how much of the gain is theirs.

// FirstStage returns the candidate with all of c's settings that say what serves the model and that the default does not
// have anyway, and none of those for instances and batching. It is the default when nothing is left.
func (s Space) FirstStage(c Candidate) Candidate {
	var kept []Setting
	for _, setting := range c.settings {
		base, known := s.Facts.base(setting.Knob)
		if isFirstStage(setting.Knob) && (!known || base != setting.Value || isUnlikeDefault(c, setting.Knob)) {
			kept = append(kept, setting)
		}
	}
	return Candidate{kept}
}

// InFirstStage reports whether c serves with the default's instances and batching. It is true of the default.
func (s Space) InFirstStage(c Candidate) bool {
	for _, setting := range c.settings {
		base, known := s.Facts.base(setting.Knob)
		if !isFirstStage(setting.Knob) && (!known || base != setting.Value) {
			return false
		}
	}
	return true
}

// Has reports whether a candidate lies in the space: every knob of the space has a value there that the space lists,
// in the candidate, or in the default where the candidate leaves it alone, and nothing else differs from the default. A
// first stage may lie outside: it has the default's instances and batching, which the space need not list.
func (s Space) Has(c Candidate) bool {
	for _, k := range s.Knobs {
		if !slices.Contains(k.Values, s.Value(c, k.Name)) {
			return false
		}
	}
	return !slices.ContainsFunc(c.settings, func(setting Setting) bool {
		base, known := s.Facts.base(setting.Knob)
		isListed := slices.ContainsFunc(s.Knobs, func(k Knob) bool { return k.Name == setting.Knob })
		return !isListed && (!known || base != setting.Value)
	})
}

// isFirstStage reports whether a knob belongs to what serves the model.
func isFirstStage(knob string) bool {
	scope, known := KnobScope(knob)
	return known && (scope == ScopeArtifact || scope == ScopeEngine)
}

// isUnlikeDefault reports whether a knob that is not set means something else with c's other settings
// than in the default. Idle threads wait busily unless told otherwise, except beside a provider with a
// pool of its own (modelconfig.Options.Given).
func isUnlikeDefault(c Candidate, knob string) bool {
	of, _ := c.Get(KnobExecutionProvider)
	return knob == sessionoption.AllowSpinning && provider.Of(string(of)).HasPoolBeside()
}
