package search

import (
	"slices"
	"strings"

	"tuner/ort/provider"
)

// Place is an execution provider on which a variant of the model serves, in one ONNX Runtime build
// if several are measured. Two builds may compute one provider differently.
type Place struct {
	Provider string
	Runtime  string // flavour@version; "" if a single build is measured
}

// String names the place in the journal and in reports: "cpu", or "cpu in openvino@1.24.1".
func (p Place) String() string {
	if p.Runtime == "" {
		return p.Provider
	}
	return p.Provider + " in " + p.Runtime
}

// ParsePlace reads the output of String.
func ParsePlace(text string) Place {
	of, runtime, _ := strings.Cut(text, " in ")
	return Place{of, runtime}
}

// Places lists the places of the space's candidates on this machine: each execution provider in
// each measured build in which it works. cpu comes first.
func (s Space) Places() []Place {
	var places []Place
	for _, of := range s.providers() {
		for _, r := range s.Facts.measured() {
			if _, out := r.Unavailable[of]; !out {
				places = append(places, s.Facts.place(of, r))
			}
		}
	}
	return places
}

// Reference returns the place of the original model with which all variants are compared: cpu in
// the default's build.
func (s Space) Reference() Place { return s.Facts.place(provider.CPU, s.Facts.measured()[0]) }

// providers lists the execution providers of the space, cpu first; without the knob, the default's
// provider.
func (s Space) providers() []string {
	f := newFolding(s)
	i, ok := f.index[KnobExecutionProvider]
	if !ok {
		return []string{f.provider(make([]Value, len(s.Knobs)))}
	}
	var list []string
	for _, v := range s.Knobs[i].Values {
		if v == provider.CPU {
			list = slices.Insert(list, 0, provider.CPU)
		} else {
			list = append(list, string(v))
		}
	}
	return list
}

// measured lists the builds that serve candidates, the default's first. It is never empty.
func (f Facts) measured() []RuntimeFacts {
	switch {
	case len(f.Runtimes) == 0:
		return []RuntimeFacts{{Unavailable: f.Unavailable}}
	case f.TritonOnly:
		return f.Runtimes[:1] // all others are folded
	}
	return f.Runtimes
}

// place adds the build's name if there are several.
func (f Facts) place(of string, r RuntimeFacts) Place {
	if len(f.measured()) == 1 {
		return Place{Provider: of}
	}
	return Place{of, r.Name}
}
