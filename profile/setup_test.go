package profile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/internal/hostinfo"
	"tuner/model/modelconfig"
	"tuner/model/precision/accuracy"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// A model with two instance groups has no single count to search. This must be reported before
// anything is measured.
func TestSpaceThatCannotBeConfiguredBeginsNoJournal(t *testing.T) {
	t.Parallel()
	text := `name: "m" backend: "onnxruntime" max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: 8 } output { name: "y" data_type: TYPE_FP32 dims: 8 }
instance_group [ { name: "a" kind: KIND_CPU count: 1 }, { name: "b" kind: KIND_CPU count: 1 } ]`
	config, err := modelconfig.Parse("config.pbtxt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := spec.ParseProfile("p.yaml", []byte("model: m.onnx\nspace: {instance_count: [1, 2]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p.Output = t.TempDir()
	setup := profile.Setup{Profile: p, Subject: profile.Subject{Name: "m", Config: config}, Facts: search.Facts{Batching: true}}
	_, err = profile.OpenLog(setup, time.Unix(0, 0))
	if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), "p.yaml: space: ") ||
		!strings.Contains(err.Error(), "needs a single one") {
		t.Errorf("error %v; want an InputError that names the profile's space and the groups", err)
	}
	if _, _, err := journal.Read(p.Output); err == nil {
		t.Error("a journal was begun")
	}
}

// A journal can be resumed only while the same variants are rejected and the same runtimes are
// compared.
func TestResumeComparesVariantsAndRuntimes(t *testing.T) {
	t.Parallel()
	p, subject, _ := variantCase(t, "output: out\nspace: {precision: [fp32, int8]}")
	setup := profile.Setup{Profile: p, Subject: subject, Facts: search.Facts{Batching: true},
		Runtime:  journal.RuntimeInfo{Flavour: "cpu", Version: "1.31.1"},
		Variants: []journal.Variant{{Precision: "int8", Accuracy: map[string]accuracy.Report{"cpu": {Rows: 4, Outputs: map[string]accuracy.Figures{}}}}}}
	open := func(s profile.Setup) (campaign.Log, error) { return profile.OpenLog(s, time.Unix(0, 0)) }
	log, err := open(setup)
	if err != nil {
		t.Fatal(err)
	}
	if got := log.Header().Variants; len(got) != 1 || got[0].Accuracy["cpu"].Rows != 4 {
		t.Errorf("header has the variants %+v", got)
	}
	closed := func(log campaign.Log, err error) error {
		if err != nil {
			return err
		}
		return log.Close()
	}
	if err := closed(log, nil); err != nil {
		t.Fatal(err)
	}
	if err := closed(open(setup)); err != nil {
		t.Errorf("the same campaign: %v", err)
	}
	rejected, runtimes, accepted, data := setup, setup, setup, setup
	rejected.Variants = []journal.Variant{{Precision: "int8", Rejected: map[string]string{"openvino": "x"}}, {Precision: "fp16", Rejected: map[string]string{"": "y"}}}
	accepted.Variants = []journal.Variant{{Precision: "int8", Accuracy: map[string]accuracy.Report{"cpu": {}, "openvino": {}}}}
	data.Data = strings.Repeat("d", 64)
	runtimes.Runtimes = []journal.RuntimeInfo{{Flavour: "cpu", Version: "1.31.1"}, {Flavour: "openvino", Version: "1.24.1"}}
	for want, s := range map[string]profile.Setup{
		"rejected variants: none then, int8 on openvino, fp16 now":               rejected,
		"accepted variants: int8 on cpu then, int8 on cpu, int8 on openvino now": accepted,
		"inputs of the accuracy check: none then, dddddddddddd now":              data,
		"ONNX Runtime builds: one then, cpu@1.31.1, openvino@1.24.1 now":         runtimes,
	} {
		if err := closed(open(s)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// The file with the inputs may have another path. Its content is compared.
func TestResumeComparesDataByContent(t *testing.T) {
	t.Parallel()
	p, subject, _ := variantCase(t, "output: out\nspace: {precision: [fp32, int8]}\naccuracy: {data: rows.npz, calibration: more.npz}")
	setup := profile.Setup{Profile: p, Subject: subject, Facts: search.Facts{Batching: true}, Data: "d"}
	log, err := profile.OpenLog(setup, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	moved, err := spec.ParseProfile("elsewhere/p.yaml", append([]byte("# moved\n"), p.Text...))
	if err != nil {
		t.Fatal(err)
	}
	moved.Output = p.Output
	setup.Profile = moved
	if log, err = profile.OpenLog(setup, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// The end of a campaign may change while it is interrupted: its budget, and its until.
func TestResumeWithAnotherEnd(t *testing.T) {
	t.Parallel()
	p, subject, _ := variantCase(t, "output: out\nsearch: {budget: 5m, until: 5%}")
	setup := profile.Setup{Profile: p, Subject: subject, Facts: search.Facts{Batching: true}}
	for _, end := range []string{"budget: 5m, until: 5%", "budget: 5m, until: 2%", "budget: 9m", "budget: 9m, until: 0.05"} {
		other, err := spec.ParseProfile(p.Path, []byte(strings.Replace(string(p.Text), "budget: 5m, until: 5%", end, 1)))
		if err != nil {
			t.Fatal(err)
		}
		other.Output = p.Output
		setup.Profile = other
		log, err := profile.OpenLog(setup, time.Unix(0, 0))
		if err != nil {
			t.Fatalf("{%s}: %v", end, err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	setup.Profile.Search.Seed++
	if _, err := profile.OpenLog(setup, time.Unix(0, 0)); err == nil || !strings.Contains(err.Error(), "asks for another search") {
		t.Errorf("another seed: %v", err)
	}
}

// Another campaign's journal is detected before the variants are made. The own journal is accepted
// although it already has variants.
func TestCheckLogKnowsNoVariantsYet(t *testing.T) {
	t.Parallel()
	p, subject, maker := variantCase(t, "output: out\nspace: {precision: [fp32, int8], instance_count: [1, 2]}")
	before := profile.Setup{Profile: p, Subject: subject, Facts: search.Facts{Batching: true}}
	if err := profile.CheckLog(before); err != nil {
		t.Fatalf("without a journal: %v", err)
	}
	variants, err := profile.MakeVariants(t.Context(), p, subject, before.Facts, maker, allWork, profile.VariantTime(p.Search.Budget.Time))
	if err != nil {
		t.Fatal(err)
	}
	variants.Data = "d"
	log, err := profile.OpenLog(before.With(variants), time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if h := log.Header(); len(h.Models) != 2 || h.Data != "d" || len(h.Variants) != 1 {
		t.Errorf("header has %d models, data %q, %d variants", len(h.Models), h.Data, len(h.Variants))
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := profile.CheckLog(before); err != nil {
		t.Errorf("its own journal: %v", err)
	}
	other := before
	if other.Profile, err = spec.ParseProfile(p.Path, []byte(strings.Replace(string(p.Text), "[1, 2]", "[1, 4]", 1))); err != nil {
		t.Fatal(err)
	}
	err = profile.CheckLog(other)
	if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), "holds the journal of another campaign") {
		t.Errorf("error %v, want an InputError that names the other campaign", err)
	}
}

// A configuration that the engine would refuse at load is reported before anything is measured.
func TestSpaceThatTheEngineRefuses(t *testing.T) {
	t.Parallel()
	check := func(knob, value string, refused bool) {
		t.Helper()
		p, subject, _ := variantCase(t, "space: {execution_provider: openvino, "+knob+": "+value+"}\ndeploy_target: tuner")
		err := profile.CheckSpace(p, subject, search.Facts{Batching: true})
		if input := new(profile.InputError); errors.As(err, &input) != refused || refused && !strings.Contains(err.Error(), "caches lie below") {
			t.Errorf("%s: %s: error %v, refused: want %t", knob, value, err, refused)
		}
	}
	check("openvino.cache_dir", "/tmp/blobs", true)
	check("openvino.cache_dir", "blobs", false)
}

// plainSetup makes a campaign of the MLP sample without variants.
func plainSetup(t *testing.T) profile.Setup {
	t.Helper()
	p, subject, _ := variantCase(t, "output: out\nspace: {instance_count: [1, 2]}")
	return profile.Setup{Profile: p, Subject: subject, Facts: search.Facts{Batching: true}, Fingerprint: "this one"}
}

// goOn begins or resumes the journal of a campaign, and closes it.
func goOn(s profile.Setup) error {
	log, err := profile.OpenLog(s, time.Unix(0, 0))
	if err != nil {
		return err
	}
	return log.Close()
}

// A build of ONNX Runtime may be given by name or by path. Its version must be the same, and so
// must its content if known.
func TestResumeComparesTheContentOfRuntimes(t *testing.T) {
	t.Parallel()
	build := func(flavour, version, library, sha256 string) journal.RuntimeInfo {
		return journal.RuntimeInfo{Flavour: flavour, Version: version, Library: library, SHA256: sha256}
	}
	own := build("external", "1.31.1", "/opt/lib.so", "aaaa")
	for name, c := range map[string]struct {
		then, now journal.RuntimeInfo
		want      string // "" if it can be resumed
	}{
		"the same":                    {own, own, ""},
		"moved":                       {own, build("external", "1.31.1", "/usr/lib.so", "aaaa"), ""},
		"by name, then by path":       {build("cpu", "1.31.1", "/opt/lib.so", ""), own, ""},
		"before contents were known":  {build("external", "1.31.1", "/opt/lib.so", ""), own, ""},
		"replaced by another version": {own, build("external", "1.32.0", "/opt/lib.so", "bbbb"), "external@1.31.1 aaaa then, external@1.32.0 bbbb now"},
		"replaced by the same one":    {own, build("external", "1.31.1", "/opt/lib.so", "bbbb"), "external@1.31.1 aaaa then, external@1.31.1 bbbb now"},
		"another of the same version": {own, build("external", "1.31.1", "/usr/lib.so", "bbbb"), "external@1.31.1 aaaa then, external@1.31.1 bbbb now"},
		"another flavour":             {own, build("cpu", "1.31.1", "/cache/lib.so", ""), "external@1.31.1 aaaa then, cpu@1.31.1 now"},
	} {
		s := plainSetup(t)
		s.Runtime = c.then
		if err := goOn(s); err != nil {
			t.Fatal(err)
		}
		s.Runtime = c.now
		err := goOn(s)
		if goesOn := err == nil; goesOn != (c.want == "") || !goesOn && !strings.Contains(err.Error(), "ONNX Runtime: "+c.want+"\n") {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// The space of a campaign does not change between runs. An execution provider must not stop working
// or start to work.
func TestResumeComparesExecutionProviders(t *testing.T) {
	t.Parallel()
	begun := plainSetup(t)
	begun.Facts.Unavailable = map[string]string{"cuda": "no GPU"}
	if err := goOn(begun); err != nil {
		t.Fatal(err)
	}
	same, lost, won, second := begun, begun, begun, begun
	same.Facts.Unavailable = map[string]string{"cuda": "still no GPU"}
	if err := goOn(same); err != nil {
		t.Errorf("for another reason: %v", err)
	}
	lost.Facts.Unavailable = map[string]string{"cuda": "no GPU", "openvino": "no library"}
	won.Facts.Unavailable = nil
	second.Facts.Runtimes = []search.RuntimeFacts{{Name: "cpu@1.31.1", Unavailable: map[string]string{"openvino": "not in it"}}}
	const what = "execution providers that do not work: cuda then, "
	for want, s := range map[string]profile.Setup{
		what + "cuda, openvino now\n    openvino: no library\n": lost,
		what + "none now\n": won,
		what + "cuda, openvino in cpu@1.31.1 now\n    openvino in cpu@1.31.1: not in it\n": second,
	} {
		for _, err := range []error{profile.CheckLog(s), goOn(s)} {
			if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want an InputError with %q", err, want)
			}
		}
	}
}

// On another machine of the same type, the remedy is a folder of its own that learns from the first.
func TestResumeOnAnotherMachine(t *testing.T) {
	t.Parallel()
	s := plainSetup(t)
	s.Placement = &hostinfo.Placement{Node: "n1", BootID: "1"}
	if err := goOn(s); err != nil {
		t.Fatal(err)
	}
	s.Placement = &hostinfo.Placement{Node: "n2", BootID: "2"}
	for _, err := range []error{profile.CheckLog(s), goOn(s)} {
		want := fmt.Sprintf("add %q to `search.earlier:`", s.Profile.Output)
		if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), "n1 (start 1) then, n2 (start 2) now") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want an InputError with both machines and %s", err, want)
		}
	}
	s.Placement = &hostinfo.Placement{Node: "n1", BootID: "3"}
	if err := goOn(s); err != nil {
		t.Errorf("the same machine after another start: %v", err)
	}
}

// The providers of another server are known only after it was asked, which a dry run does not do.
func TestResumeComparesTheProvidersOfServers(t *testing.T) {
	t.Parallel()
	s := plainSetup(t)
	s.Server = &journal.ServerInfo{Mode: "remote", Where: "gpu7:8001", Name: "triton", Version: "2.51.0"}
	s.Facts.Unavailable = map[string]string{"openvino": "triton does not load the model"}
	if err := goOn(s); err != nil {
		t.Fatal(err)
	}
	s.Facts.Unavailable = nil
	if err := profile.CheckLog(s); err != nil {
		t.Errorf("a dry run: %v", err)
	}
	if err := goOn(s); err == nil {
		t.Error("the campaign goes on in another space")
	}
}

// A folder to which another campaign writes is detected before its journal is opened.
func TestCheckFree(t *testing.T) {
	t.Parallel()
	s := plainSetup(t)
	log, err := profile.OpenLog(s, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	err = profile.CheckFree(s.Profile)
	if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), "output: cannot use folder") || !strings.Contains(err.Error(), "is writing there") {
		t.Errorf("error %v, want an InputError that names the folder and the other campaign", err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := profile.CheckFree(s.Profile); err != nil {
		t.Errorf("after its end: %v", err)
	}
}

// An output folder that is a file is named as such, without the name of a temporary file.
func TestOutputThatIsAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := profile.CheckOutput(spec.Profile{Path: "p.yaml", Output: path})
	if want := fmt.Sprintf("p.yaml: output: cannot use folder %q: it is a file; choose another folder", path); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The finals may be on another server than the search.
func TestIsRemote(t *testing.T) {
	t.Parallel()
	local, remote := &journal.ServerInfo{Mode: "local"}, &journal.ServerInfo{Mode: "remote"}
	for _, c := range []struct {
		server, finals    *journal.ServerInfo
		inSearch, inFinal bool
	}{
		{nil, nil, false, false}, {local, nil, false, false}, {remote, nil, true, true}, {nil, remote, false, true}, {remote, local, true, false},
	} {
		s := profile.Setup{Server: c.server, Finals: c.finals}
		if s.IsRemote(search.PhaseSearch) != c.inSearch || s.IsRemote(search.PhaseLoadCurve) != c.inSearch || s.IsRemote(search.PhaseFinal) != c.inFinal {
			t.Errorf("search on %s, finals on %s: remote %t and %t", c.server, c.finals, s.IsRemote(search.PhaseSearch), s.IsRemote(search.PhaseFinal))
		}
	}
}
