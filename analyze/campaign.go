// Package analyze turns a campaign's journal into a Result: every configuration that was tried, its figures with 95 %
// intervals, their ranking under the goal, and the gain over the default configuration. It stands between the journal and
// the reports. Package posterior says what is known, package verdict decides; this package says for what configuration
// and adds what explains it. It is a pure function of the journal and the goal: it measures nothing, writes nothing, and
// has no rule of its own for what is best, but for the mean of three loads.
package analyze

import (
	"fmt"

	"tuner/internal/parallel"
	"tuner/journal"
	"tuner/search"
	"tuner/spec"
	"tuner/steps"
)

// Campaign is a journal read back.
type Campaign struct {
	Dir     string // the campaign's output folder
	Header  journal.Header
	Profile spec.Profile     // parsed from the text in the header
	Facts   search.Facts     // that the space was folded with
	Events  []search.Event   // in the order in which they happened
	End     *journal.End     // of the last run; nil when it was killed or still goes on
	Earlier []search.Earlier // other campaigns that the strategy learned from: in no figure of this one
	Steps   steps.List       // of `tuner run`; none where the campaign was run by itself
}

// Replay reads the journal in a campaign's output folder, and the record of the steps beside it, also while the campaign is
// running. The error is fs.ErrNotExist when there is no journal.
func Replay(dir string) (Campaign, error) {
	header, records, err := journal.Read(dir)
	if err != nil {
		return Campaign{}, fmt.Errorf("cannot replay campaign: %w", err)
	}
	c := Campaign{Dir: dir, Header: header}
	if c.Profile, err = spec.RecordedProfile(header.Spec.Path, []byte(header.Spec.Text)); err != nil {
		return Campaign{}, fmt.Errorf("cannot replay campaign in %q: its profile does not parse any more: %w", dir, err)
	}
	if err := header.DecodeFacts(&c.Facts); err != nil {
		return Campaign{}, fmt.Errorf("cannot replay campaign in %q: cannot read its facts: %w", dir, err)
	}
	events, err := decodeTrials(records)
	if err != nil {
		return Campaign{}, fmt.Errorf("cannot replay campaign in %q: %w", dir, err)
	}
	c.Events = events
	for _, r := range records {
		if err := c.apply(r); err != nil {
			return Campaign{}, fmt.Errorf("cannot replay campaign in %q: %w", dir, err)
		}
	}
	if c.Steps, err = steps.Read(dir); err != nil {
		return Campaign{}, fmt.Errorf("cannot replay campaign in %q: %w", dir, err)
	}
	return c, nil
}

// decodeTrials decodes the records of trials, in their order. That is nearly all that a replay costs: their histograms are compressed.
func decodeTrials(records []journal.Record) ([]search.Event, error) {
	var trials []journal.Record
	for _, r := range records {
		if r.Kind == journal.KindTrial {
			trials = append(trials, r)
		}
	}
	if len(trials) == 0 {
		return nil, nil
	}
	events := make([]search.Event, len(trials))
	err := parallel.Try(len(trials), func(i int) error { return trials[i].Decode(&events[i]) })
	return events, err
}

// apply adds one record that is not of a trial; kinds that say nothing about results are passed over.
func (c *Campaign) apply(r journal.Record) error {
	switch r.Kind {
	case journal.KindEarlier:
		var e search.Earlier
		if err := r.Decode(&e); err != nil {
			return err
		}
		c.Earlier = append(c.Earlier, e)
	case journal.KindSession:
		c.End = nil
	case journal.KindEnd:
		var end journal.End
		if err := r.Decode(&end); err != nil {
			return err
		}
		c.End = &end
	}
	return nil
}
