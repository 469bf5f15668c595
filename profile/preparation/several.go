package preparation

import (
	"context"
	"fmt"

	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/profile"
	"tuner/search"
	"tuner/spec"
)

// openSeveral opens the models of a profile of several, and checks their campaign.
func (c *Campaign) openSeveral(ctx context.Context, p spec.Profile, host hostinfo.Host) error {
	joint := search.Facts{Parts: map[string]search.Facts{}}
	var parts []profile.Setup
	for _, m := range p.Models {
		part, err := c.openModel(ctx, m.Path, m, host)
		if err != nil {
			return err
		}
		parts = append(parts, part)
		joint.Parts[m.Name], joint.Cores = part.Facts, part.Facts.Cores
	}
	if err := checkMemory(p, parts); err != nil {
		return exit.OfFiles(err)
	}
	setup, err := c.options.Setup(p, profile.Subject{}, joint, c.Builds, host)
	if err != nil {
		return err
	}
	setup.Parts = parts
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

// checkMemory refuses models that do not fit into memory together: a server holds at least the
// content of all model files.
func checkMemory(p spec.Profile, parts []profile.Setup) error {
	var sum int64
	for _, part := range parts {
		sum += part.Subject.Files[0].Bytes
	}
	limit, of := float64(hostinfo.UsableMemory()), "the machine has"
	for _, c := range p.Goal.Constraints {
		if c.Metric == measure.Memory && c.Max != nil {
			limit, of = *c.Max, "constraints.memory allows"
		}
	}
	if limit > 0 && float64(sum) > limit {
		return &profile.InputError{Err: fmt.Errorf("%s: models: their files have %s together, and %s %s; leave models out, or serve them on several machines",
			p.Path, measure.Memory.Format(float64(sum)), of, measure.Memory.Format(limit))}
	}
	return nil
}
