package fleet

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// More asks for further campaigns of a model on machines of a type that the stage has not used.
type More struct {
	Machine  string // name of the type
	Model    string
	Machines int      // further campaigns
	Avoid    []string // nodes that the stage has used
}

// MoreDir is the folder of further campaigns below a stage's output.
const MoreDir = "more"

// moreWait is the time in which the cluster must find a further machine. Otherwise the stage stays as it is.
const moreWait = 10 * time.Minute

// More makes the plan of further campaigns of a stage. Their numbers follow those of the stage. The run has a name
// and an output folder of its own. The cluster ends it if it finds no machine.
func (p Plan) More(list []More) (Plan, error) {
	var parts []Part
	for _, part := range p.Parts {
		part.Run, part.Items = "", nil
		for _, m := range list {
			if m.Machine != part.Machine {
				continue
			}
			part.Avoid = append(part.Avoid, m.Avoid...)
			for n := range m.Machines {
				part.Items = append(part.Items, Item{m.Model, p.Fleet.Repeats + n + 1})
			}
		}
		if len(part.Items) > 0 {
			slices.Sort(part.Avoid)
			part.Avoid = slices.Compact(part.Avoid)
			parts = append(parts, part)
		}
	}
	return p.further(parts).named()
}

// Further returns the plan of further campaigns of a stage that exists already, from its parts. It must not be
// computed again: a result that came late may change what More is asked for.
func (p Plan) Further(parts []Part) (Plan, error) {
	var ordered []Part
	for _, of := range p.Parts {
		for _, part := range parts {
			if part.Machine == of.Machine && part.Run == parts[0].Run {
				ordered = append(ordered, part)
			}
		}
	}
	if len(parts) == 0 || len(ordered) != len(parts) {
		return Plan{}, fmt.Errorf("%s: the further campaigns of run %s are not of one run, on types of machines that the fleet has", p.Fleet.Path, p.Run)
	}
	more := p.further(ordered)
	more.Run = parts[0].Run
	return more, nil
}

// further returns the plan of further campaigns with some parts, without a name.
func (p Plan) further(parts []Part) Plan {
	more := Plan{Fleet: p.Fleet, Stage: p.Run, Parts: parts}
	more.Fleet.Output, more.Fleet.Deadline = filepath.Join(p.Fleet.Output, MoreDir), moreWait+p.Fleet.PodDeadline()
	more.Fleet.Machines, more.Fleet.Confirm, more.Fleet.First = nil, nil, 0
	for i, part := range p.Parts {
		if slices.ContainsFunc(parts, func(x Part) bool { return x.Machine == part.Machine }) {
			more.Fleet.Machines = append(more.Fleet.Machines, p.Fleet.Machines[i])
		}
	}
	return more
}
