// Package campaign interprets journals. Package journal keeps records complete and in order and
// does not interpret them. This package turns them into the campaign (Read) and continues a
// campaign (Begin, Resume). It also compares two campaigns (Differences), and reads campaigns from
// which another one learns (Earlier).
//
// All code that needs a journal's content reads it here: the campaign loop, package analyze, and
// the steps of `tuner run`. The package measures nothing, and does not decide which configuration
// is best.
package campaign

import (
	"fmt"
	"os"
	"path/filepath"

	"tuner/internal/checksum"
	"tuner/internal/hostinfo"
	"tuner/internal/parallel"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// Campaign is the content of a journal.
type Campaign struct {
	Dir     string // output folder of the campaign
	Header  journal.Header
	Profile spec.Profile     // parsed from the text in the header, with the until of the last run
	Facts   search.Facts     // facts with which the space was folded
	Events  []search.Event   // in order of time
	End     *journal.End     // of the last run; nil if it was killed or is still running
	Earlier []search.Earlier // campaigns from which the strategy learned; Events does not contain their events
	// Placements of its runs, without repetitions; empty in older journals
	Placements []hostinfo.Placement
}

// Read reads the journal in a campaign's output folder. The campaign may still be running. The
// error is fs.ErrNotExist if there is no journal. It does not name the folder, since the caller
// does.
func Read(dir string) (Campaign, error) {
	header, records, err := journal.Read(dir)
	if err != nil {
		return Campaign{}, err
	}
	c := Campaign{Dir: dir, Header: header}
	if c.Profile, err = spec.RecordedProfile(header.Spec.Path, []byte(header.Spec.Text)); err != nil {
		return Campaign{}, fmt.Errorf("this version of tuner cannot read its profile: %w", err)
	}
	if c.Profile.Search.Until, err = until(c.Profile, records); err != nil {
		return Campaign{}, err
	}
	if len(header.Parts) != len(c.Profile.Models) {
		return Campaign{}, fmt.Errorf("its header has %d models, and its profile %d", len(header.Parts), len(c.Profile.Models))
	}
	c.Profile = withShapes(c.Profile, header)
	for i := range header.Parts {
		c.Profile.Models[i] = withShapes(c.Profile.Models[i], header.Part(i))
	}
	if err := header.DecodeFacts(&c.Facts); err != nil {
		return Campaign{}, fmt.Errorf("cannot read its facts: %w", err)
	}
	if c.Events, err = trials(records); err != nil {
		return Campaign{}, err
	}
	if c.Earlier, err = earlier(records); err != nil {
		return Campaign{}, err
	}
	if c.End, err = end(records); err != nil {
		return Campaign{}, err
	}
	if c.Placements, err = placements(header, records); err != nil {
		return Campaign{}, err
	}
	c.Placements = hostinfo.Distinct(c.Placements)
	return c, nil
}

// withShapes returns the profile with the shapes of the requests that a header has.
func withShapes(p spec.Profile, h journal.Header) spec.Profile {
	if h.Requests != nil {
		p.Inputs.Shape = h.Requests.Shapes
	}
	if h.Mix != nil {
		p.Inputs.Shape = h.Mix.Kinds[h.Mix.Kinds.Usual()].Shapes
	}
	return p
}

// Exists reports whether there is a journal in a folder, readable or not.
func Exists(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, journal.FileName))
	return err == nil
}

// Digest returns the digest of a campaign's measurements: its header and its trials. It ignores the
// other records, since each run adds some even if it measures nothing.
func Digest(dir string) (string, error) {
	header, records, err := journal.Read(dir)
	if err != nil {
		return "", err
	}
	parts := []any{header}
	for _, r := range records {
		if r.Kind == journal.KindTrial {
			parts = append(parts, r.Data)
		}
	}
	sum, err := checksum.OfJSON(parts)
	if err != nil {
		return "", fmt.Errorf("cannot compute the digest of the campaign in %q: %w", dir, err)
	}
	return sum, nil
}

// trials decodes the records of trials, in their order, on all cores. Nearly all the time of a
// replay is spent here, since the histograms of trials are compressed.
func trials(records []journal.Record) ([]search.Event, error) {
	records = ofKind(records, journal.KindTrial)
	if len(records) == 0 {
		return nil, nil
	}
	events := make([]search.Event, len(records))
	err := parallel.Try(len(records), func(i int) error { return records[i].Decode(&events[i]) })
	return events, err
}

// earlier decodes the campaigns from which a campaign learns.
func earlier(records []journal.Record) ([]search.Earlier, error) {
	var list []search.Earlier
	for _, r := range ofKind(records, journal.KindEarlier) {
		var e search.Earlier
		if err := r.Decode(&e); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// placements returns where a campaign began, and where each of its runs ran. Older journals do not
// say it.
func placements(header journal.Header, records []journal.Record) ([]hostinfo.Placement, error) {
	var list []hostinfo.Placement
	if header.Placement != nil {
		list = append(list, *header.Placement)
	}
	for _, r := range ofKind(records, journal.KindSession) {
		var s journal.Session
		if err := r.Decode(&s); err != nil {
			return nil, err
		}
		if s.Placement != nil {
			list = append(list, *s.Placement)
		}
	}
	return list, nil
}

// until returns the relative gain at which the last run could end. It may differ from the profile's.
// Older journals do not say it.
func until(p spec.Profile, records []journal.Record) (float64, error) {
	last := p.Search.Until
	for _, r := range ofKind(records, journal.KindSession) {
		var s journal.Session
		if err := r.Decode(&s); err != nil {
			return 0, err
		}
		if s.Until != nil {
			last = *s.Until
		}
	}
	return last, nil
}

// end decodes the end of the last run. It returns nil if a run began after the last end.
func end(records []journal.Record) (*journal.End, error) {
	var last *journal.End
	for _, r := range records {
		switch r.Kind {
		case journal.KindSession:
			last = nil
		case journal.KindEnd:
			last = new(journal.End)
			if err := r.Decode(last); err != nil {
				return nil, err
			}
		}
	}
	return last, nil
}

func ofKind(records []journal.Record, kind string) []journal.Record {
	var list []journal.Record
	for _, r := range records {
		if r.Kind == kind {
			list = append(list, r)
		}
	}
	return list
}
