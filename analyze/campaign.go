// Package analyze turns a campaign's journal into a Result. A Result has every configuration that
// was tried, with 95 % intervals, its rank under the goal, and its gain over the default. The
// package stands between the journal and the reports.
//
// Package posterior estimates the figures and package verdict decides. This package applies them to
// the configurations, and explains the answer. It is a pure function of the journal and the goal:
// it measures nothing and writes nothing. It has one rule of its own for what is best: the mean of
// three loads.
package analyze

import (
	"fmt"

	"tuner/pipeline/steps"
	"tuner/profile/campaign"
)

// Campaign is the content of a journal, with the record of the steps of `tuner run`.
type Campaign struct {
	campaign.Campaign
	Steps steps.List // of `tuner run`; empty if the campaign was run by itself
}

// Replay reads the journal in a campaign's output folder and the record of the steps beside it. The
// campaign may still be running. The error is fs.ErrNotExist if there is no journal.
func Replay(dir string) (Campaign, error) {
	c, err := campaign.Read(dir)
	if err != nil {
		return Campaign{}, fmt.Errorf("cannot replay campaign in %q: %w", dir, err)
	}
	list, err := steps.Read(dir)
	if err != nil {
		return Campaign{}, fmt.Errorf("cannot replay campaign in %q: %w", dir, err)
	}
	return Campaign{c, list}, nil
}
