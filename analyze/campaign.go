// Package analyze turns a campaign's journal into a Result: every configuration that was tried, its
// figures with 95 % intervals, their ranking under the goal, and the gain over the default
// configuration. It stands between the journal and the reports. Package posterior says what is
// known, package verdict decides; this package says for what configuration and adds what explains
// it. It is a pure function of the journal and the goal: it measures nothing, writes nothing, and
// has no rule of its own for what is best, but for the mean of three loads.
package analyze

import (
	"fmt"

	"tuner/pipeline/steps"
	"tuner/profile/campaign"
)

// Campaign is a journal read back, and what `tuner run` did around it.
type Campaign struct {
	campaign.Campaign
	Steps steps.List // of `tuner run`; none where the campaign was run by itself
}

// Replay reads the journal in a campaign's output folder, and the record of the steps beside it,
// also while the campaign is running. The error is fs.ErrNotExist when there is no journal.
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
