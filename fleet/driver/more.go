package driver

import (
	"context"
	"maps"
	"slices"
	"strings"

	"tuner/fleet"
	"tuner/fleet/objects"
	"tuner/internal/exit"
	"tuner/internal/words"
)

// Nodes lists the nodes that have some labels. It blocks for one question, and ends with its context.
type Nodes interface {
	Nodes(ctx context.Context, labels map[string]string) ([]string, error)
}

// More carries the further campaigns of a stage through, on machines that it has not used. Those that the cluster has
// already go on, whatever is asked for now. A type of which the cluster has no other machine is left out. A user who
// may not list nodes waits for one instead.
//
// That no machine was found is no error: the stage keeps the figures that it has.
func (d Driver) More(ctx context.Context, nodes Nodes, list []fleet.More) error {
	further, err := d.Further(ctx)
	if err != nil {
		return err
	}
	if len(further) == 0 {
		list = slices.DeleteFunc(slices.Clone(list), func(m fleet.More) bool { return !d.hasOther(ctx, nodes, m) })
		if len(list) == 0 {
			return nil
		}
		plan, err := d.Plan.More(list)
		if err != nil {
			return err
		}
		further = append(further, plan)
		for _, m := range list {
			d.sayf("%s %s: disturbed machines; measuring on %s more", m.Machine, m.Model, words.Count(m.Machines, "machine"))
		}
	}
	for _, plan := range further {
		d.Plan = plan
		_, err := d.Run(ctx)
		if exit.CodeOf(err) == exit.Inconclusive {
			d.sayf("%v; the answer is that of the machines so far", err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Further returns the plans of the further campaigns of the stage that the cluster has, in the order of their names.
func (d Driver) Further(ctx context.Context) ([]fleet.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, longestQuestion)
	defer cancel()
	list, err := d.List.Further(ctx, d.Plan.Run)
	if err != nil {
		return nil, err
	}
	parts := map[string][]fleet.Part{} // by run
	for _, m := range list {
		text, isPlan := m.Data[objects.PlanFile]
		if !isPlan {
			continue
		}
		part, err := fleet.ParsePart("ConfigMap "+m.Metadata.Name, []byte(text))
		if err != nil {
			return nil, err
		}
		parts[part.Run] = append(parts[part.Run], part)
	}
	var plans []fleet.Plan
	for _, run := range slices.Sorted(maps.Keys(parts)) {
		plan, err := d.Plan.Further(parts[run])
		if err != nil {
			return nil, err
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

// hasOther reports whether the cluster may have a machine of a type that a stage has not used, and says if not.
func (d Driver) hasOther(ctx context.Context, nodes Nodes, m fleet.More) bool {
	ctx, cancel := context.WithTimeout(ctx, longestQuestion)
	defer cancel()
	i := slices.IndexFunc(d.Plan.Fleet.Machines, func(x fleet.Machine) bool { return x.Name == m.Machine })
	if i < 0 {
		return false // a type that this stage has not
	}
	names, err := nodes.Nodes(ctx, d.Plan.Fleet.Machines[i].Select)
	if err != nil || slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(m.Avoid, name) }) {
		return true
	}
	d.sayf("%s %s: others disturbed its machines, and the cluster has no other one of the type than %s", m.Machine, m.Model, strings.Join(m.Avoid, ", "))
	return false
}
