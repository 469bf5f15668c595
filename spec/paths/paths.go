// Package paths lists the files that a profile names, for those who restrict them. It is the one
// place that a new field with a file must be added to.
package paths

import (
	"maps"
	"slices"

	"tuner/spec"
)

// Path is a file that a field names.
type Path struct {
	Field string // as in profile.yaml: load.inputs.data, or models.NAME.config
	File  string // as package spec has it: relative to the working folder, or absolute
}

// Of returns the files that a profile reads for its models, in the order of its fields. Neither
// folders are among them (output and search.earlier), nor libraries and programs.
func Of(p spec.Profile) []Path {
	var list []Path
	add := func(field, file string) {
		if file != "" {
			list = append(list, Path{field, file})
		}
	}
	add("pipeline", p.Pipeline)
	add("model", p.Model.Path)
	add("config", p.Model.Config)
	add("load.inputs.data", p.Inputs.Data)
	add("load.inputs.mix.histogram", p.Inputs.Mix.Histogram)
	add("load.arrivals.trace", p.Load.Arrivals.File)
	add("accuracy.data", p.Accuracy.Data)
	add("accuracy.calibration", p.Accuracy.Calibration)
	for _, name := range slices.Sorted(maps.Keys(p.Model.Precisions)) {
		add("space.precision."+name, p.Model.Precisions[name])
	}
	for _, one := range p.Models {
		for _, x := range Of(one) {
			add("models."+one.Name+"."+x.Field, x.File)
		}
	}
	return list
}
