package preparation

import (
	"context"
	"fmt"
	"strings"

	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/isolation"
	"tuner/profile"
	"tuner/search"
	"tuner/spec"
)

// openSeveral opens the models of a profile of several, and checks their campaign. What the files show, it
// checks before a server is launched.
func (c *Campaign) openSeveral(ctx context.Context, p spec.Profile, host hostinfo.Host) error {
	var subjects []profile.Subject
	for _, m := range p.Models {
		subject, err := c.openSubject(ctx, m.Path, m, host)
		if err != nil {
			return err
		}
		subjects = append(subjects, subject)
	}
	if err := checkMemory(p, subjects, hostinfo.UsableMemory()); err != nil {
		return exit.OfFiles(err)
	}
	machine, err := c.processors(p, profile.FactsOf(subjects[0], host).Cores)
	if err != nil {
		return err
	}
	facts := search.Facts{Parts: map[string]search.Facts{}}
	var parts []profile.Setup
	for i, m := range p.Models {
		part, err := c.openModel(ctx, m, subjects[i], host)
		if err != nil {
			return err
		}
		parts = append(parts, part)
		facts.Parts[m.Name], facts.Cores = part.Facts, part.Facts.Cores
	}
	if machine != nil {
		facts.Nodes = machine.Nodes()
	}
	setup, err := c.options.Setup(p, profile.Subject{}, facts, c.Builds, host)
	if err != nil {
		return err
	}
	setup.Parts, setup.Processors = parts, machine
	if err := c.settle(setup); err != nil {
		return err
	}
	for _, part := range parts {
		if err := c.rehearse(ctx, part.Profile, part.Subject, part.Facts); err != nil {
			return err
		}
	}
	return nil
}

// processors returns the processors that the models of a profile divide; nil if they share all. The error is
// that too few cores are usable for it.
func (c *Campaign) processors(p spec.Profile, cores int) (*isolation.Machine, error) {
	if !p.DividesCores() {
		return nil, nil
	}
	if err := p.CheckCores(cores); err != nil {
		return nil, exit.OfFiles(&profile.InputError{Err: err})
	}
	machine, unbound, err := isolation.ThisMachine()
	if err != nil {
		return nil, err
	}
	if unbound != "" {
		c.options.say("isolation: memory is not bound to NUMA nodes: " + unbound)
	}
	return &machine, nil
}

// checkMemory refuses models that do not fit together into the usable memory of this machine, in bytes (0:
// unknown), or into what the profile allows. A server holds at least the content of all model files.
func checkMemory(p spec.Profile, subjects []profile.Subject, usable int64) error {
	var sum int64
	var sizes []string
	for i, s := range subjects {
		bytes := s.Files[0].Content()
		sum += bytes
		sizes = append(sizes, fmt.Sprintf("%s %s", p.Models[i].Name, measure.Memory.Format(float64(bytes))))
	}
	limit, of := float64(usable), "this machine has"
	for _, c := range p.Goal.Constraints {
		if c.Metric == measure.Memory && c.Max != nil && (limit == 0 || *c.Max < limit) {
			limit, of = *c.Max, "constraints.memory allows"
		}
	}
	if limit == 0 || float64(sum) <= limit {
		return nil
	}
	return &profile.InputError{Err: fmt.Errorf("%s: models: their files have %s together (%s), and %s %s; leave models out, or serve them on several machines",
		p.Path, measure.Memory.Format(float64(sum)), strings.Join(sizes, ", "), of, measure.Memory.Format(limit))}
}
