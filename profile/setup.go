package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"time"

	"tuner/internal/durable"
	"tuner/model/modelconfig"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

// Setup is what a campaign depends on, beside the time of day: all of it goes into the journal's header.
type Setup struct {
	Profile     spec.Profile
	Subject     Subject
	Facts       search.Facts
	Tool        string                // version of the program
	Runtime     journal.RuntimeInfo   // of the default, on the bundled engine; of another server's campaign that which compares variants
	Runtimes    []journal.RuntimeInfo // of the knob runtime that are measured; nil without it
	Server      *journal.ServerInfo   // that is measured; nil for the bundled engine
	Finals      *journal.ServerInfo   // that the finals are measured on; nil for the same
	Variants    []journal.Variant     // what was compared with the original
	Data        string                // digest of the inputs that they were compared on; "" without
	Machine     json.RawMessage       // facts for reports
	Fingerprint string                // figures of a machine with another one do not compare
}

// With returns the setup of a campaign that measures variants too.
func (s Setup) With(v Variants) Setup {
	s.Subject, s.Facts.Rejected, s.Variants, s.Data = s.Subject.With(v.Files), v.Rejected, v.Records, v.Data
	return s
}

// Library returns the ONNX Runtime library that serves a candidate.
func (s Setup) Library(c search.Candidate) string {
	name, _ := c.Get(search.KnobRuntime)
	for _, r := range s.Runtimes {
		if r.Name() == string(name) {
			return r.Library
		}
	}
	return s.Runtime.Library
}

// asked is the campaign in the terms of a journal.
func (s Setup) asked(now time.Time) (campaign.Asked, error) {
	header, err := s.header(now)
	return campaign.Asked{Header: header, Profile: s.Profile, Config: s.Subject.Config}, err
}

// header makes the journal's first record.
func (s Setup) header(now time.Time) (journal.Header, error) {
	config, err := modelconfig.Format(s.Subject.Config)
	if err != nil {
		return journal.Header{}, fmt.Errorf("cannot print the default configuration: %w", err)
	}
	facts, err := json.Marshal(s.Facts)
	if err != nil {
		return journal.Header{}, fmt.Errorf("cannot encode the facts of the space: %w", err)
	}
	h := journal.Header{
		Tool: s.Tool, Created: now, Seed: s.Profile.Search.Seed, Runtime: s.Runtime, Machine: s.Machine, Fingerprint: s.Fingerprint,
		Server: s.Server, Finals: s.Finals,
		Spec:  journal.NewSpecFile(s.Profile.Path, spec.WithoutSecrets(s.Profile.Text)),
		Model: s.Subject.Name, BaseConfig: string(config), Facts: facts, Runtimes: s.Runtimes, Variants: s.Variants, Data: s.Data,
	}
	for _, f := range s.Subject.Files {
		h.Models = append(h.Models, journal.ModelFile{Precision: f.Precision, Path: f.Source.Path, SHA256: f.Source.Digest, Bytes: f.Bytes})
	}
	h.Earlier, err = campaign.EarlierFolders(s.Profile)
	return h, err
}

// OpenLog starts the journal in the campaign's output folder, or goes on with the one that is there. A journal of another
// campaign (other profile, model, machine or runtime) is an InputError and left untouched. So is a space with a candidate
// that the default configuration cannot be changed into: neither campaign nor analysis could go on with it.
func OpenLog(s Setup, now time.Time) (campaign.Log, error) {
	if err := CheckSpace(s.Profile, s.Subject, s.Facts); err != nil {
		return campaign.Log{}, err
	}
	asked, err := s.asked(now)
	if err != nil {
		return campaign.Log{}, err
	}
	earlier, err := Reuse(s)
	if err != nil {
		return campaign.Log{}, err
	}
	log, err := campaign.Begin(asked, earlier)
	if errors.Is(err, fs.ErrExist) {
		log, err = campaign.Resume(asked)
	}
	if err != nil {
		return campaign.Log{}, outputError(s.Profile, err)
	}
	if err := log.StartRun(s.Tool); err != nil {
		return campaign.Log{}, errors.Join(err, log.Close())
	}
	return log, nil
}

// CheckLog reports a journal of another campaign in the output folder, an InputError, as far as that shows while s has no
// variants yet. It changes nothing in the folder.
func CheckLog(s Setup) error {
	asked, err := s.asked(time.Time{})
	if err != nil {
		return err
	}
	if err := campaign.Check(asked); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return outputError(s.Profile, err)
	}
	return nil
}

// Reuse returns the earlier campaigns that a campaign learns from, the newest first. Once the campaign has begun, its journal
// names them, so that it goes on as it began; before that, the profile names their folders. It is nil for a strategy that
// does not learn from them. A folder without a campaign of the same model, requests and default configuration is an
// InputError.
func Reuse(s Setup) ([]search.Earlier, error) {
	if list, isBegun, err := campaign.RecordedEarlier(s.Profile.Output); isBegun {
		return list, err
	}
	asked, err := s.asked(time.Time{})
	if err != nil {
		return nil, err
	}
	list, problems := campaign.ReadEarlier(asked)
	for i, problem := range problems {
		problems[i] = fmt.Errorf("%s: search.earlier: %w", s.Profile.Path, problem)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, &InputError{err}
	}
	if strategy, _ := plan.Find(s.Profile.Search.Strategy); !strategy.Reuses {
		return nil, nil
	}
	return list, nil
}

// CheckFree finds out whether another campaign is writing to the output folder, an InputError. It is for whatever would disturb that one before the
// journal is opened.
func CheckFree(p spec.Profile) error {
	if err := journal.CheckFree(p.Output); err != nil {
		return outputError(p, err)
	}
	return nil
}

// CheckOutput finds out whether the output folder can be made and written, an InputError if not.
func CheckOutput(p spec.Profile) error {
	if err := durable.CheckFolder(p.Output); err != nil {
		return outputError(p, err)
	}
	return nil
}

// mostChecked is how many configurations CheckSpace makes of a large space: a second's work.
const mostChecked = 20_000

// CheckSpace makes the configuration of every candidate, and returns the first one's error as an InputError: one that the
// engine would refuse is one, too. Of a large space it makes those that differ least from the default configuration, which has
// every value of every knob in it.
func CheckSpace(p spec.Profile, s Subject, facts search.Facts) error {
	for c := range checked(p.Space(facts).Candidates()) {
		config, err := spec.Apply(s.Config, c)
		if err == nil && p.UsesBundled() {
			err = modelconfig.RefuseUnsupported(config)
		}
		if err != nil {
			return &InputError{fmt.Errorf("%s: space: %w", p.Path, err)}
		}
	}
	return nil
}

// checked goes through the candidates whose configurations are checked: all, or the first pool's and one of each other pool that differs
// from the default's in two knobs at most.
func checked(candidates *search.Candidates) iter.Seq[search.Candidate] {
	return func(yield func(search.Candidate) bool) {
		next, left := candidates.Walk(), mostChecked
		if n, _ := candidates.Len(); n > mostChecked {
			left = min(candidates.Batchers(), mostChecked)
		}
		for c, ok := next(); ok && left > 0; c, ok = next() {
			if left--; !yield(c) {
				return
			}
		}
		if n, _ := candidates.Len(); n <= mostChecked {
			return
		}
		left = mostChecked
		for distance := range 3 {
			for pool := range candidates.Near(search.Candidate{}, distance) {
				if left--; left < 0 || !yield(candidates.Member(pool, 0)) {
					return
				}
			}
		}
	}
}

// outputError says that the output folder cannot be used, and how the user can mend that.
func outputError(p spec.Profile, err error) error {
	if errors.As(err, new(*campaign.OtherError)) {
		return &InputError{fmt.Errorf("%s: output: %w\nchoose another `output:`, or remove its journal.jsonl to start over", p.Path, err)}
	}
	remedy := ""
	if errors.As(err, new(*fs.PathError)) {
		remedy = "; choose another `output:` on a disk that can be written"
	}
	return &InputError{fmt.Errorf("%s: output: cannot use folder %q: %w%s", p.Path, p.Output, err, remedy)}
}
