package profile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"tuner/internal/durable"
	"tuner/journal"
	"tuner/modelconfig"
	"tuner/search"
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
	h.Earlier, err = earlierFolders(s.Profile)
	return h, err
}

// Log is a campaign's open journal with what earlier runs wrote to it.
type Log struct {
	*journal.Journal
	Past    []search.Event   // of earlier runs of this campaign
	Earlier []search.Earlier // other campaigns that it learns from
}

// Elapsed is the campaign time that earlier runs used.
func (l Log) Elapsed() time.Duration {
	if len(l.Past) == 0 {
		return 0
	}
	return l.Past[len(l.Past)-1].Elapsed
}

// OpenLog starts the journal in the campaign's output folder, or goes on with the one that is there. A journal of another
// campaign (other profile, model, machine or runtime) is an InputError and left untouched; so is a space with a candidate
// that the default configuration cannot be changed into, since neither campaign nor analysis could go on with it.
func OpenLog(s Setup, now time.Time) (Log, error) {
	if err := CheckSpace(s.Profile, s.Subject, s.Facts); err != nil {
		return Log{}, err
	}
	header, err := s.header(now)
	if err != nil {
		return Log{}, err
	}
	earlier, err := Reuse(s)
	if err != nil {
		return Log{}, err
	}
	var entries []journal.Entry
	for _, e := range earlier {
		entries = append(entries, journal.Entry{Kind: journal.KindEarlier, Value: e})
	}
	created, err := journal.Create(s.Profile.Output, header, entries...)
	if err == nil {
		return begin(s, Log{Journal: created, Earlier: earlier})
	}
	if !errors.Is(err, fs.ErrExist) {
		return Log{}, outputError(s.Profile, err)
	}
	opened, records, err := journal.Open(s.Profile.Output)
	if err != nil {
		return Log{}, outputError(s.Profile, err)
	}
	log, err := resume(s, header, opened, records)
	if err != nil {
		return Log{}, errors.Join(err, opened.Close())
	}
	return begin(s, log)
}

// CheckLog finds the journal of another campaign in the output folder, an InputError, as far as that shows while s has no variants yet, and other
// servers may not have tried their execution providers. It changes nothing in the folder.
func CheckLog(s Setup) error {
	old, _, err := journal.Read(s.Profile.Output)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return outputError(s.Profile, err)
	}
	now, err := s.header(time.Time{})
	if err != nil {
		return err
	}
	old.Models = slices.DeleteFunc(old.Models, func(f journal.ModelFile) bool { return slices.Contains(s.Profile.Model.Convert, f.Precision) })
	old.Variants, old.Data = nil, ""
	if s.Server != nil || s.Finals != nil { // in a dry run nobody asks them
		old.Facts = now.Facts
	}
	return otherCampaign(s.Profile, old, now)
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

// outputError says that the output folder cannot be used, which is the user's to mend.
func outputError(p spec.Profile, err error) error {
	remedy := ""
	if errors.As(err, new(*fs.PathError)) {
		remedy = "; choose another `output:` on a disk that can be written"
	}
	return &InputError{fmt.Errorf("%s: output: cannot use folder %q: %w%s", p.Path, p.Output, err, remedy)}
}

// begin marks the start of a run.
func begin(s Setup, log Log) (Log, error) {
	session := journal.Session{Tool: s.Tool, Elapsed: log.Elapsed()}
	if err := log.Append(journal.KindSession, session); err != nil {
		return Log{}, errors.Join(err, log.Close())
	}
	return log, nil
}

// resume checks that the journal belongs to this campaign and reads its events.
func resume(s Setup, now journal.Header, j *journal.Journal, records []journal.Record) (Log, error) {
	if err := otherCampaign(s.Profile, j.Header(), now); err != nil {
		return Log{}, err
	}
	earlier, err := recorded(records)
	if err != nil {
		return Log{}, err
	}
	log := Log{Journal: j, Earlier: earlier}
	for _, r := range records {
		if r.Kind != journal.KindTrial {
			continue
		}
		var e search.Event
		if err := r.Decode(&e); err != nil {
			return Log{}, err
		}
		log.Past = append(log.Past, e)
	}
	return log, nil
}

// otherCampaign returns an InputError when a journal cannot be gone on with.
func otherCampaign(p spec.Profile, old, now journal.Header) error {
	differences := differences(p, old, now)
	if len(differences) == 0 {
		return nil
	}
	return &InputError{fmt.Errorf("%s: output: folder %q holds the journal of another campaign:\n  %s\nchoose another `output:`, or remove its journal.jsonl to start over",
		p.Path, p.Output, strings.Join(differences, "\n  "))}
}

// differences lists why a journal cannot be gone on with. When it ends may differ: a larger budget, or
// a smaller until, continues the campaign.
func differences(p spec.Profile, old, now journal.Header) []string {
	var list []string
	add := func(what, then, now string) {
		if then != now {
			list = append(list, fmt.Sprintf("%s: %s then, %s now", what, then, now))
		}
	}
	if old.Spec.SHA256 != now.Spec.SHA256 && !sameSearch(old.Spec, p) {
		list = append(list, fmt.Sprintf("profile: %s asks for another search than the journal's (%s)", p.Path, old.Spec.Path))
	}
	add("model name", old.Model, now.Model)
	add("models", digests(old.Models), digests(now.Models))
	add("default configuration", shortDigest(old.BaseConfig), shortDigest(now.BaseConfig))
	if !isSameBuild(old.Runtime, now.Runtime) {
		add("ONNX Runtime", buildText(old.Runtime), buildText(now.Runtime))
	}
	add("ONNX Runtime builds", runtimeNames(old.Runtimes), runtimeNames(now.Runtimes))
	add("server", old.Server.String(), now.Server.String())
	add("server of the finals", finalsName(old), finalsName(now))
	add("inputs of the accuracy check", shortData(old.Data), shortData(now.Data))
	add("rejected variants", rejectedNames(old.Variants), rejectedNames(now.Variants))
	add("accepted variants", acceptedNames(old.Variants), acceptedNames(now.Variants))
	add("earlier campaigns", cmp.Or(strings.Join(old.Earlier, ", "), "none"), cmp.Or(strings.Join(now.Earlier, ", "), "none"))
	add("machine", old.Fingerprint, now.Fingerprint)
	if text := providersDifference(old.Facts, now.Facts); text != "" {
		list = append(list, text)
	}
	return list
}

// isSameBuild reports whether two headers name one build of ONNX Runtime: a file that is known by its name once, and by its path the other time, or
// builds of one name at two paths. Its version must be the same, since another file may have taken its place, and its content as far as that is known.
func isSameBuild(a, b journal.RuntimeInfo) bool {
	isCalledSame := a.Library == b.Library || a.Name() == b.Name()
	return isCalledSame && a.Version == b.Version && (a.SHA256 == b.SHA256 || a.SHA256 == "" || b.SHA256 == "")
}

// buildText names a build of ONNX Runtime, also by its content where that is known.
func buildText(r journal.RuntimeInfo) string {
	if r.SHA256 == "" {
		return r.Name()
	}
	return r.Name() + " " + r.SHA256[:min(12, len(r.SHA256))]
}

// providersDifference says which execution providers do not work now and did then, or the other way round; "" for none. Their candidates are folded,
// so that the space would be another one.
func providersDifference(old, now json.RawMessage) string {
	then, today := brokenProviders(old), brokenProviders(now)
	names := func(reasons map[string]string) string {
		return cmp.Or(strings.Join(slices.Sorted(maps.Keys(reasons)), ", "), "none")
	}
	if names(then) == names(today) {
		return ""
	}
	text := fmt.Sprintf("execution providers that do not work: %s then, %s now", names(then), names(today))
	for _, name := range slices.Sorted(maps.Keys(today)) {
		if _, known := then[name]; !known {
			text += fmt.Sprintf("\n    %s: %s", name, today[name])
		}
	}
	return text
}

// brokenProviders maps the execution providers that a header's facts name as unavailable, each in its build where there are several, to the reasons.
func brokenProviders(encoded json.RawMessage) map[string]string {
	var facts search.Facts
	_ = json.Unmarshal(encoded, &facts) // a header without facts names none
	reasons := map[string]string{}
	maps.Copy(reasons, facts.Unavailable)
	for _, r := range facts.Runtimes {
		for provider, reason := range r.Unavailable {
			reasons[provider+" in "+r.Name] = reason
		}
	}
	return reasons
}

// sameSearch reports whether the journal's profile asks for the same search as p, whatever its comments, budget, until and paths.
func sameSearch(old journal.SpecFile, p spec.Profile) bool {
	then, err := spec.RecordedProfile(old.Path, []byte(old.Text))
	return err == nil && AskSame(then, p)
}

// AskSame reports whether two profiles ask for the same search, whatever their comments, budgets, untils and paths.
func AskSame(a, b spec.Profile) bool { return reflect.DeepEqual(searchOf(a), searchOf(b)) }

// searchOf leaves out of a profile what does not change the search; models and inputs are compared by digest, calibration shows in
// the models, servers by what they say of themselves, and earlier campaigns may be named on the command line.
func searchOf(p spec.Profile) spec.Profile {
	p.Accuracy.Data, p.Accuracy.Calibration, p.Search.Earlier = "", "", nil
	p.Runner = serverless(p.Runner)
	if p.Finals != nil {
		finals := serverless(*p.Finals)
		p.Finals = &finals
	}
	p.Search.Budget, p.Search.Until = search.Budget{}, 0
	p.Path, p.Text, p.Output, p.Model = "", nil, "", spec.ModelSource{}
	return p
}

// serverless leaves out of a runner which server it is, and how it is reached: the header says what server answered. How it is started, and
// the protocol, stay, as far as a journal keeps that.
func serverless(r spec.Runner) spec.Runner {
	r = r.WithoutSecrets()
	return spec.Runner{Protocol: r.Protocol, Args: r.Args, Environment: r.Environment}
}

func finalsName(h journal.Header) string {
	if h.Finals == nil {
		return "the same"
	}
	return h.Finals.String()
}

func digests(files []journal.ModelFile) string {
	parts := make([]string, len(files))
	for i, f := range files {
		parts[i] = f.Precision + " " + f.SHA256[:min(12, len(f.SHA256))]
	}
	return strings.Join(parts, ", ")
}

func runtimeNames(runtimes []journal.RuntimeInfo) string {
	names := make([]string, len(runtimes))
	for i, r := range runtimes {
		names[i] = r.Name()
	}
	return cmp.Or(strings.Join(names, ", "), "one")
}

// rejectedNames lists what is left out of the space for its accuracy: "int8 on openvino, fp16".
func rejectedNames(variants []journal.Variant) string {
	var names []string
	for _, v := range variants {
		for _, provider := range slices.Sorted(maps.Keys(v.Rejected)) {
			if provider == "" {
				names = append(names, v.Precision)
			} else {
				names = append(names, v.Precision+" on "+provider)
			}
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// acceptedNames lists what was compared with the original and serves: "fp32 on openvino, int8 on cpu".
func acceptedNames(variants []journal.Variant) string {
	var names []string
	for _, v := range variants {
		for _, provider := range slices.Sorted(maps.Keys(v.Accuracy)) {
			if v.Rejected[provider] == "" && v.Rejected[""] == "" {
				names = append(names, v.Precision+" on "+provider)
			}
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// shortData shortens the digest of inputs, for people.
func shortData(digest string) string { return cmp.Or(digest[:min(12, len(digest))], "none") }

func shortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
