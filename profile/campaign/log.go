package campaign

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tuner/internal/hostinfo"
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

// StartRun records the beginning of a run, where it runs, and the relative gain at which it may end.
func (l Log) StartRun(tool string, on *hostinfo.Placement, until float64) error {
	return l.Append(journal.KindSession, journal.Session{Tool: tool, Elapsed: l.Elapsed(), Placement: on, Until: &until})
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
	err = same(opened.Header(), records, now)
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
	then, records, err := journal.Read(now.Profile.Output)
	if err != nil {
		return err
	}
	then.Models = given(then.Models, now.Profile)
	then.Variants, then.Data = nil, ""
	then.Parts = slices.Clone(then.Parts)
	for i := range min(len(then.Parts), len(now.Profile.Models)) {
		p := &then.Parts[i]
		p.Models, p.Variants, p.Data = given(p.Models, now.Profile.Models[i]), nil, ""
	}
	if now.Header.Server != nil || now.Header.Finals != nil {
		then.Facts = now.Header.Facts
	}
	return same(then, records, now)
}

// given returns the model files that are not made by tuner.
func given(files []journal.ModelFile, p spec.Profile) []journal.ModelFile {
	return slices.DeleteFunc(slices.Clone(files), func(f journal.ModelFile) bool { return slices.Contains(p.Model.Convert, f.Precision) })
}

// OtherError means that a folder has the journal of another campaign.
type OtherError struct {
	Dir         string
	Differences []string
	// IsElsewhere: it is the same campaign on another machine of the same type
	IsElsewhere bool
}

func (e *OtherError) Error() string {
	return fmt.Sprintf("folder %q holds the journal of another campaign:\n  %s", e.Dir, strings.Join(e.Differences, "\n  "))
}

// same returns a *OtherError if the campaign of a journal cannot be resumed as the requested one.
func same(then journal.Header, records []journal.Record, now Asked) error {
	list := Differences(then, now)
	elsewhere, err := elsewhere(then, records, now.Header.Placement)
	if err != nil {
		return err
	}
	isElsewhere := len(list) == 0 && elsewhere != ""
	if isElsewhere {
		list = append(list, elsewhere)
	}
	if len(list) > 0 {
		return &OtherError{now.Profile.Output, list, isElsewhere}
	}
	return nil
}

// elsewhere says that a campaign last ran on another machine than this one; "" if it did not, or if
// its journal does not say where it ran.
func elsewhere(then journal.Header, records []journal.Record, here *hostinfo.Placement) (string, error) {
	list, err := placements(then, records)
	if err != nil || len(list) == 0 || here == nil {
		return "", err
	}
	last := list[len(list)-1]
	if !last.IsElsewhere(*here) {
		return "", nil
	}
	return fmt.Sprintf("machine: %s then, %s now. Both are of one type, and two machines of one type differ", last.Name(), here.Name()), nil
}
