package campaign

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tuner/model/modelconfig"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// Asked is the campaign that a profile requests now, in the terms of a journal. Recorded campaigns
// are compared with it.
type Asked struct {
	Header  journal.Header // header that a new journal would have
	Profile spec.Profile
	Config  *modelconfig.Config // the default configuration
}

// Log is a campaign's open journal, with the records of earlier runs.
type Log struct {
	*journal.Journal
	Past    []search.Event   // events of earlier runs of this campaign
	Earlier []search.Earlier // other campaigns from which it learns
}

// Elapsed returns the campaign time of earlier runs.
func (l Log) Elapsed() time.Duration {
	if len(l.Past) == 0 {
		return 0
	}
	return l.Past[len(l.Past)-1].Elapsed
}

// StartRun records the beginning of a run.
func (l Log) StartRun(tool string) error {
	return l.Append(journal.KindSession, journal.Session{Tool: tool, Elapsed: l.Elapsed()})
}

// Begin starts the journal in the output folder of a campaign. The error is fs.ErrExist if the
// folder has one.
func Begin(now Asked, learnsFrom []search.Earlier) (Log, error) {
	var entries []journal.Entry
	for _, e := range learnsFrom {
		entries = append(entries, journal.Entry{Kind: journal.KindEarlier, Value: e})
	}
	created, err := journal.Create(now.Profile.Output, now.Header, entries...)
	if err != nil {
		return Log{}, err
	}
	return Log{Journal: created, Earlier: learnsFrom}, nil
}

// Resume opens the journal in the output folder of a campaign, and reads the records of earlier
// runs. A *OtherError means that it is the journal of another campaign, which it does not change.
func Resume(now Asked) (Log, error) {
	opened, records, err := journal.Open(now.Profile.Output)
	if err != nil {
		return Log{}, err
	}
	log := Log{Journal: opened}
	err = same(opened.Header(), now)
	if err == nil {
		log.Earlier, err = earlier(records)
	}
	if err == nil {
		log.Past, err = trials(records)
	}
	if err != nil {
		return Log{}, errors.Join(err, opened.Close())
	}
	return log, nil
}

// Check reports what Resume would refuse, before the variants of the model are made. The error is
// then a *OtherError. For servers other than the bundled engine it does not compare execution
// providers, since a dry run does not ask those servers. It changes nothing in the folder. The
// error is fs.ErrNotExist if there is no journal.
func Check(now Asked) error {
	then, _, err := journal.Read(now.Profile.Output)
	if err != nil {
		return err
	}
	isMade := func(f journal.ModelFile) bool { return slices.Contains(now.Profile.Model.Convert, f.Precision) }
	then.Models = slices.DeleteFunc(then.Models, isMade)
	then.Variants, then.Data = nil, ""
	if now.Header.Server != nil || now.Header.Finals != nil {
		then.Facts = now.Header.Facts
	}
	return same(then, now)
}

// OtherError means that a folder has the journal of another campaign.
type OtherError struct {
	Dir         string
	Differences []string
}

func (e *OtherError) Error() string {
	return fmt.Sprintf("folder %q holds the journal of another campaign:\n  %s", e.Dir, strings.Join(e.Differences, "\n  "))
}

// same returns a *OtherError if the campaign of a header cannot be resumed as the requested one.
func same(then journal.Header, now Asked) error {
	if list := Differences(then, now); len(list) > 0 {
		return &OtherError{now.Profile.Output, list}
	}
	return nil
}
