package results

import (
	"slices"

	"tuner/fleet"
)

// Left returns what a second stage measures: of each model the types of machines that may be the cheapest,
// and for each the values that the knobs of its best configurations have. The default is measured
// in any case.
func Left(r Ranking, top int) func(machine, model string) (fleet.Space, bool) {
	return func(machine, model string) (fleet.Space, bool) {
		for _, m := range r.Models {
			for i, x := range m.Types {
				if m.Model == model && x.Machine == machine && x.State == StateAnswer && (i == 0 || x.ToBest == nil || x.ToBest.Lo <= betweenMachines) {
					return x.space(top), true
				}
			}
		}
		return nil, false
	}
}

// space returns the values of each knob in the best configurations of a type.
func (x Type) space(top int) fleet.Space {
	s := fleet.Space{}
	for _, c := range x.configs[:min(top, len(x.configs))] {
		for _, setting := range c.config.Candidate.Settings() {
			if value := string(setting.Value); !slices.Contains(s[setting.Knob], value) {
				s[setting.Knob] = append(s[setting.Knob], value)
			}
		}
	}
	return s
}
