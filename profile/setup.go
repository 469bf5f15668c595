package profile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"time"

	"tuner/internal/durable"
	"tuner/internal/hostinfo"
	"tuner/model/isolation"
	"tuner/model/modelconfig"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
	"tuner/spec/knobs"
	"tuner/spec/secrets"
)

// Setup has everything on which a campaign depends, except the time. The journal's header contains
// all of it.
type Setup struct {
	Profile spec.Profile
	Subject Subject
	Facts   search.Facts
	Tool    string // program version
	// Runtime: build of the default on the bundled engine; for other servers, the build that
	// compares variants
	Runtime     journal.RuntimeInfo
	Runtimes    []journal.RuntimeInfo // measured values of the knob runtime; nil without it
	Server      *journal.ServerInfo   // the measured server; nil for the bundled engine
	Finals      *journal.ServerInfo   // the server of the finals; nil for the same
	Variants    []journal.Variant     // variants that were compared with the original
	Data        string                // digest of the inputs of the comparison; "" without one
	Machine     json.RawMessage       // facts for reports
	Fingerprint string                // figures of machines with different fingerprints are not compared
	Placement   *hostinfo.Placement   // this machine, and the part of it that is used
	// Processors are those that several models divide among them; nil if they share all.
	Processors *isolation.Machine
	// Parts are several models, each as a setup of it alone: Profile, Subject, Facts, Runtime,
	// Variants and Data. The setup itself then has no Subject, Variants and Data. Those of a pipeline are its
	// stages, and Subject is the pipeline.
	Parts []Setup
}

// IsSeveral reports whether the campaign is about several models.
func (s Setup) IsSeveral() bool { return len(s.Parts) > 0 }

// Each lists the setups of the models: Parts, or the setup itself.
func (s Setup) Each() []Setup {
	if s.IsSeveral() {
		return s.Parts
	}
	return []Setup{s}
}

// IsRemote reports whether a phase of the campaign is measured on a server that was running already.
func (s Setup) IsRemote(phase search.Phase) bool {
	server := s.Server
	if phase == search.PhaseFinal && s.Finals != nil {
		server = s.Finals
	}
	return server != nil && server.Mode == spec.RunnerRemote
}

// Name returns the name of the model, or the names of several, joined by +.
func (s Setup) Name() string {
	if s.IsSeveral() {
		return s.Profile.Name
	}
	return s.Subject.Name
}

// WithParts returns the setup of a campaign of several models that also measures variants of each, in
// the order of the parts.
func (s Setup) WithParts(list []Variants) Setup {
	s.Parts, s.Facts.Parts = slices.Clone(s.Parts), maps.Clone(s.Facts.Parts)
	for i, v := range list {
		s.Parts[i] = s.Parts[i].With(v)
		s.Facts.Parts[s.Parts[i].Subject.Name] = s.Parts[i].Facts
	}
	return s
}

// In returns the setup with another output folder.
func (s Setup) In(folder string) Setup {
	s.Profile.Output = folder
	s.Parts = slices.Clone(s.Parts)
	for i := range s.Parts {
		s.Parts[i].Profile.Output = folder
	}
	return s
}

// With returns the setup of a campaign that also measures variants.
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

// asked returns the campaign in the terms of a journal.
func (s Setup) asked(now time.Time) (campaign.Asked, error) {
	header, err := s.header(now)
	p := s.Profile
	p.Inputs.Shape = s.Subject.shapes(p)
	p.Models = slices.Clone(p.Models)
	for i, part := range s.Parts {
		p.Models[i].Inputs.Shape = part.Subject.shapes(part.Profile)
	}
	return campaign.Asked{Header: header, Profile: p, Config: s.Subject.Config}, err
}

// header makes the journal's first record.
func (s Setup) header(now time.Time) (journal.Header, error) {
	facts, err := json.Marshal(s.Facts)
	if err != nil {
		return journal.Header{}, fmt.Errorf("cannot encode the facts of the space: %w", err)
	}
	h := journal.Header{
		Tool: s.Tool, Created: now, Seed: s.Profile.Search.Seed, Runtime: s.Runtime, Machine: s.Machine, Fingerprint: s.Fingerprint,
		Placement: s.Placement, Processors: s.Processors, Server: s.Server, Finals: s.Finals,
		Spec:  journal.NewSpecFile(s.Profile.Path, secrets.Without(s.Profile.Text)),
		Model: s.Name(), Facts: facts, Runtimes: s.Runtimes,
	}
	for _, part := range s.Parts {
		own, err := part.part()
		if err != nil {
			return journal.Header{}, err
		}
		h.Parts = append(h.Parts, own)
	}
	if s.IsSeveral() && !s.Profile.IsPipeline() {
		return h, nil
	}
	own, err := s.part()
	if err != nil {
		return journal.Header{}, err
	}
	h.Models, h.BaseConfig, h.Variants, h.Data, h.Requests, h.Mix = own.Models, own.BaseConfig, own.Variants, own.Data, own.Requests, own.Mix
	beside, err := s.Subject.Libraries.Files()
	if err != nil {
		return h, err
	}
	h.Operators, h.ProviderLibrary = beside.Operators, beside.Provider
	h.Earlier, err = campaign.EarlierFolders(s.Profile)
	return h, err
}

// part returns what the journal has of one model.
func (s Setup) part() (journal.ModelPart, error) {
	config, err := modelconfig.Format(s.Subject.Config)
	if err != nil {
		return journal.ModelPart{}, fmt.Errorf("cannot print the default configuration: %w", err)
	}
	p := journal.ModelPart{
		Model: s.Subject.Name, BaseConfig: string(config), Variants: s.Variants, Data: s.Data,
		Requests: s.Subject.Rows.record(), Mix: journal.NewMix(s.Subject.Mix),
	}
	for _, f := range s.Subject.Files {
		p.Models = append(p.Models, journal.ModelFile{Precision: f.Precision, Path: cmp.Or(f.Source.Path, f.Source.Folder), SHA256: f.Source.Digest, Bytes: f.Bytes})
	}
	return p, nil
}

// OpenLog starts the journal in the campaign's output folder, or continues the existing one. A
// journal of another campaign (other profile, model, machine or runtime) is an InputError and is
// not changed. A candidate into which the default configuration cannot be changed is an InputError
// too, since campaign and analysis could not continue with it.
func OpenLog(s Setup, now time.Time) (campaign.Log, error) {
	if err := s.CheckSpace(); err != nil {
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
	if err := log.StartRun(s.Tool, s.Placement, s.Profile.Search.Until); err != nil {
		return campaign.Log{}, errors.Join(err, log.Close())
	}
	return log, nil
}

// CheckLog reports the journal of another campaign in the output folder as an InputError, before s
// has variants. It changes nothing in the folder.
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

// Reuse returns the earlier campaigns from which a campaign learns, the newest first. Before a
// campaign begins, the profile names their folders. After that, its journal has them, so that the
// campaign continues as it began. Reuse returns nil for a strategy that does not learn. A folder
// without a campaign of the same model, requests and default configuration is an InputError.
func Reuse(s Setup) ([]search.Earlier, error) {
	if s.IsSeveral() {
		return nil, nil // package spec has refused earlier campaigns
	}
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

// CheckFree returns an InputError if another campaign is writing to the output folder. Call it
// before actions that would disturb that campaign and that precede the opening of the journal.
func CheckFree(p spec.Profile) error {
	if err := journal.CheckFree(p.Output); err != nil {
		return outputError(p, err)
	}
	return nil
}

// CheckOutput checks whether the output folder can be made and written. It returns an InputError if
// not.
func CheckOutput(p spec.Profile) error {
	if err := durable.CheckFolder(p.Output); err != nil {
		return outputError(p, err)
	}
	return nil
}

// mostChecked is the number of configurations of a large space that CheckSpace makes. They take
// about a second.
const mostChecked = 20_000

// CheckSpace is the function CheckSpace for the campaign's model, or for each of several.
func (s Setup) CheckSpace() error {
	for _, part := range s.Each() {
		if err := CheckSpace(part.Profile, part.Subject, part.Facts); err != nil {
			return err
		}
	}
	return nil
}

// CheckSpace makes the configuration of every candidate. It returns the first error as an
// InputError, also for a configuration that the engine would refuse. In a large space it checks
// only the candidates that differ least from the default configuration. They contain every value of
// every knob.
func CheckSpace(p spec.Profile, s Subject, facts search.Facts) error {
	if axis := p.Space(facts).Load; axis.Rate {
		if err := CheckPeriod(p.Path, axis.Arrivals, axis.First(), p.Search.Budget.Time); err != nil {
			return err
		}
	}
	for c := range checked(p.Space(facts).Candidates()) {
		config, err := knobs.Apply(s.Config, c)
		if err == nil && p.UsesBundled() {
			err = modelconfig.RefuseUnsupported(config)
		}
		if err != nil {
			return &InputError{fmt.Errorf("%s: space: %w", p.Path, err)}
		}
	}
	return nil
}

// checked yields the candidates to check. In a small space these are all. In a large space it
// yields those of the first pool, and one of each nearby pool. A nearby pool differs from the
// default's in at most two knobs. Of both kinds it yields at most mostChecked.
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
			for pool, isPool := range candidates.Near(search.Candidate{}, distance) {
				if !isPool {
					continue
				}
				if left--; left < 0 || !yield(candidates.Member(pool, 0)) {
					return
				}
			}
		}
	}
}

// outputError explains that the output folder cannot be used, with a remedy.
func outputError(p spec.Profile, err error) error {
	var other *campaign.OtherError
	if errors.As(err, &other) && other.IsElsewhere {
		return &InputError{fmt.Errorf("%s: output: %w\nchoose another `output:`, and add %q to `search.earlier:`: "+
			"its measurements then count, with a factor for the machine. Where a container does not show the name of its machine, set %s",
			p.Path, err, p.Output, hostinfo.EnvNode)}
	}
	if other != nil {
		return &InputError{fmt.Errorf("%s: output: %w\nchoose another `output:`, or remove its journal.jsonl to start over", p.Path, err)}
	}
	remedy := ""
	if info, failure := os.Stat(p.Output); failure == nil && !info.IsDir() {
		err = errors.New("it is a file")
		remedy = "; choose another folder"
	} else if errors.As(err, new(*fs.PathError)) {
		remedy = "; choose another folder that can be written"
	}
	return &InputError{fmt.Errorf("%s: output: cannot use folder %q: %w%s", p.Path, p.Output, err, remedy)}
}
