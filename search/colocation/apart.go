package colocation

import "tuner/search/packing"

// Apart returns the least cores on which each model alone keeps its limits at a scale, with its best
// option by what is believed: what separate servers need. It is 0 for a model without load. It returns
// false if a model does not keep them on as many cores as the server has.
func (x *Search) Apart(scale float64) ([]int, bool) {
	cores, err := packing.Apart(x.packed(false), scale)
	return cores, err == nil
}

// Fits returns nil if all models keep their limits at a scale on cores of their own, with their best options by what is
// believed. Else the error names the fewest models whose limits cannot hold together.
func (x *Search) Fits(scale float64) error {
	return packing.Fits(x.packed(false), x.settings.Cores, scale)
}

// packed returns the models with what their best options carry on some cores, as is believed or hoped.
func (x *Search) packed(isHopeful bool) []packing.Model {
	models := make([]packing.Model, len(x.settings.Models))
	for _, i := range x.models {
		models[i] = packing.Model{Name: x.settings.Models[i].Name, Load: x.settings.Models[i].Load.Level()}
		for c := range x.settings.Cores {
			models[i].Highest = append(models[i].Highest, x.highest(i, c+1, isHopeful))
		}
	}
	return models
}
