package driver

import (
	"context"
	"slices"
	"strings"

	"tuner/fleet"
	"tuner/internal/exit"
	"tuner/internal/words"
)

// Lister lists the nodes that have some labels. It blocks for one question, and ends with its context.
type Lister interface {
	Nodes(ctx context.Context, labels map[string]string) ([]string, error)
}

// More carries the further campaigns of a stage through, on machines that it has not used. A type of which the
// cluster has no other machine is left out. A user who may not list nodes waits for one instead.
//
// That no machine was found is no error: the stage keeps the figures that it has.
func (d Driver) More(ctx context.Context, nodes Lister, list []fleet.More) error {
	list = slices.DeleteFunc(slices.Clone(list), func(m fleet.More) bool { return !d.hasOther(ctx, nodes, m) })
	if len(list) == 0 {
		return nil
	}
	var err error
	if d.Plan, err = d.Plan.More(list); err != nil {
		return err
	}
	for _, m := range list {
		d.sayf("%s %s: disturbed machines; measuring on %s more", m.Machine, m.Model, words.Count(m.Machines, "machine"))
	}
	_, err = d.Run(ctx)
	if exit.CodeOf(err) == exit.Inconclusive {
		d.sayf("%v; the answer is that of the machines so far", err)
		return nil
	}
	return err
}

// hasOther reports whether the cluster may have a machine of a type that a stage has not used, and says if not.
func (d Driver) hasOther(ctx context.Context, nodes Lister, m fleet.More) bool {
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

// Exists reports whether the cluster has something of the run.
func (d Driver) Exists(ctx context.Context) (bool, error) {
	have, delivered, err := d.ask(ctx)
	return len(have.Jobs) > 0 || len(delivered) > 0, err
}
