package search

import (
	"slices"
	"strings"

	"tuner/ort/provider"
)

// Place is where a variant of the model serves: on an execution provider, in one ONNX Runtime build where several are measured.
// Two builds of one provider may compute differently.
type Place struct {
	Provider string
	Runtime  string // flavour@version; "" where a single build is measured
}

// String names the place in the journal and in reports: "cpu", or "cpu in openvino@1.24.1".
func (p Place) String() string {
	if p.Runtime == "" {
		return p.Provider
	}
	return p.Provider + " in " + p.Runtime
}

// ParsePlace reads what String wrote.
func ParsePlace(text string) Place {
	of, runtime, _ := strings.Cut(text, " in ")
	return Place{of, runtime}
}

// Places lists where the space's candidates can serve on this machine: each execution provider in each build that is measured and
// in which it works. cpu comes first.
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

// Reference is where the original serves that all variants are compared with: on cpu, in the default's build.
func (s Space) Reference() Place { return s.Facts.place(provider.CPU, s.Facts.measured()[0]) }

// providers lists the execution providers of the space, cpu first; the default's where the space leaves them alone.
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

// measured lists the builds that serve candidates, the default's first: never none.
func (f Facts) measured() []RuntimeFacts {
	switch {
	case len(f.Runtimes) == 0:
		return []RuntimeFacts{{Unavailable: f.Unavailable}}
	case f.TritonOnly:
		return f.Runtimes[:1] // all others are folded
	}
	return f.Runtimes
}

// place names the build where there are several.
func (f Facts) place(of string, r RuntimeFacts) Place {
	if len(f.measured()) == 1 {
		return Place{Provider: of}
	}
	return Place{of, r.Name}
}
