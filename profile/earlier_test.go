package profile_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/model/modelrepo"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/plan"
)

const earlierText = "output: out\nspace: {precision: [fp32, int8], instance_count: [1, 2]}"

// earlierSetup makes a campaign of the MLP sample with an int8 variant.
func earlierSetup(t *testing.T) profile.Setup {
	t.Helper()
	p, subject, _ := variantCase(t, earlierText)
	subject = subject.With([]profile.File{{Precision: "int8", Source: modelrepo.Source{Path: "int8.onnx", Digest: "made once"}}})
	return profile.Setup{Profile: p, Subject: subject, Facts: search.Facts{Batching: true}, Fingerprint: "this one",
		Runtime: journal.RuntimeInfo{Flavour: "cpu", Version: "1.31.1", Library: "lib.so"}}
}

// measured makes an event of a candidate with these settings. The number identifies it.
func measured(number int, settings ...search.Setting) search.Event {
	return search.Event{
		Trial:       search.Trial{Candidate: search.NewCandidate(settings...), Load: measure.Load{Concurrency: number, BatchSize: 1}, Phase: search.PhaseSearch},
		Measurement: measure.Measurement{Memory: 1},
	}
}

// record runs a setup's campaign with these events, and returns its output folder.
func record(t *testing.T, s profile.Setup, begun int64, events ...search.Event) string {
	t.Helper()
	s.Profile.Output = filepath.Join(t.TempDir(), "first")
	log, err := profile.OpenLog(s, time.Unix(begun, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := log.Append(journal.KindTrial, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return s.Profile.Output
}

// loads lists the numbers of an earlier campaign's events.
func loads(e search.Earlier) []int {
	list := []int{}
	for _, event := range e.Events {
		list = append(list, event.Trial.Load.Concurrency)
	}
	return list
}

func TestReuseReadsTheNewestFirst(t *testing.T) {
	t.Parallel()
	s := earlierSetup(t)
	old, recent := record(t, s, 1, measured(1)), record(t, s, 2, measured(2), measured(3))
	s.Profile.Search.Earlier = []string{old, filepath.Join(recent, journal.FileName), recent}
	list, err := profile.Reuse(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].From != recent || list[1].From != old || !list[0].Same || !list[1].Same {
		t.Fatalf("read %+v, want the two campaigns, the newest first", list)
	}
	if diff := cmp.Diff([][]int{{2, 3}, {1}}, [][]int{loads(list[0]), loads(list[1])}); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	s.Profile.Search.Strategy = plan.Grid
	if list, err := profile.Reuse(s); err != nil || len(list) != 0 {
		t.Errorf("the grid reuses %+v (%v)", list, err)
	}
}

// An incomplete last line is ignored, as in a resumed campaign.
func TestReuseOfAKilledCampaign(t *testing.T) {
	t.Parallel()
	s := earlierSetup(t)
	dir := record(t, s, 1, measured(1), measured(2))
	path := filepath.Join(dir, journal.FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	s.Profile.Search.Earlier = []string{dir}
	list, err := profile.Reuse(s)
	if err != nil || len(list) != 1 {
		t.Fatalf("read %+v, %v", list, err)
	}
	if diff := cmp.Diff([]int{1}, loads(list[0])); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// With another machine, ONNX Runtime or protocol, an earlier campaign only helps forecasts.
func TestReuseElsewhere(t *testing.T) {
	t.Parallel()
	check := func(name string, want bool, change func(*profile.Setup)) {
		t.Helper()
		s := earlierSetup(t)
		then := s
		change(&then)
		s.Profile.Search.Earlier = []string{record(t, then, 1, measured(1))}
		list, err := profile.Reuse(s)
		if err != nil || len(list) != 1 || list[0].Same != want {
			t.Errorf("%s: read %+v (%v), want it to be the same: %t", name, list, err, want)
		}
	}
	check("the same", true, func(*profile.Setup) {})
	check("library elsewhere", true, func(s *profile.Setup) { s.Runtime.Library = "moved/lib.so" })
	check("machine", false, func(s *profile.Setup) { s.Fingerprint = "another" })
	check("ONNX Runtime", false, func(s *profile.Setup) { s.Runtime.Version, s.Runtime.Library = "1.30.0", "old.so" })
	check("ONNX Runtime in the same file", false, func(s *profile.Setup) { s.Runtime.Version = "1.30.0" })
	check("protocol", false, func(s *profile.Setup) {
		s.Profile.Text = append([]byte("runner: {protocol: http}\n"), s.Profile.Text...)
	})
	check("server", false, func(s *profile.Setup) {
		s.Server = &journal.ServerInfo{Mode: "local", Where: "/bin/triton", Version: "2.51.0"}
	})
	check("server of the finals", true, func(s *profile.Setup) {
		s.Finals = &journal.ServerInfo{Mode: "local", Where: "/bin/triton", Version: "2.51.0"}
	})
}

// A server other than the bundled engine uses its own ONNX Runtime, and a dry run does not know its
// version.
func TestReuseOnAnotherServer(t *testing.T) {
	t.Parallel()
	triton := func(version string) *journal.ServerInfo {
		return &journal.ServerInfo{Mode: "local", Where: "/bin/triton", Version: version}
	}
	check := func(name string, want bool, change func(then, now *profile.Setup)) {
		t.Helper()
		then := earlierSetup(t)
		now := then
		then.Server, now.Server = triton("2.51.0"), triton("2.51.0")
		change(&then, &now)
		now.Profile.Search.Earlier = []string{record(t, then, 1, measured(1))}
		list, err := profile.Reuse(now)
		if err != nil || len(list) != 1 || list[0].Same != want {
			t.Errorf("%s: read %+v (%v), want it to be the same: %t", name, list, err, want)
		}
	}
	check("the same", true, func(_, _ *profile.Setup) {})
	check("another version", false, func(_, now *profile.Setup) { now.Server = triton("2.52.0") })
	check("a dry run", true, func(_, now *profile.Setup) { now.Server = triton("") })
	check("a dry run with another one", false, func(_, now *profile.Setup) { now.Server = &journal.ServerInfo{Mode: "local", Where: "/opt/triton"} })
	check("without variants then", true, func(then, _ *profile.Setup) { then.Runtime = journal.RuntimeInfo{} })
	check("the bundled engine then", false, func(then, _ *profile.Setup) { then.Server = nil })
}

// Figures of a precision do not count if its file has changed.
func TestReuseLeavesOutOtherFiles(t *testing.T) {
	t.Parallel()
	s := earlierSetup(t)
	int8 := search.Setting{Knob: search.KnobPrecision, Value: "int8"}
	s.Profile.Search.Earlier = []string{record(t, s, 1, measured(1), measured(2, int8))}
	s.Subject.Files[1].Source.Digest = "made anew"
	list, err := profile.Reuse(s)
	if err != nil || len(list) != 1 {
		t.Fatalf("read %+v, %v", list, err)
	}
	if diff := cmp.Diff([]int{1}, loads(list[0])); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestReuseOfSomethingElse(t *testing.T) {
	t.Parallel()
	check := func(want string, change func(now *profile.Setup)) {
		t.Helper()
		s := earlierSetup(t)
		s.Profile.Search.Earlier = []string{record(t, s, 1, measured(1))}
		change(&s)
		_, err := profile.Reuse(s)
		if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), "p.yaml: search.earlier: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want an InputError that names the field and %q", err, want)
		}
	}
	check("model: fp32 ", func(s *profile.Setup) { s.Subject.Files[0].Source.Digest = "0123456789abcdef" })
	check("client batch: 1 then, 4 now", func(s *profile.Setup) { s.Profile.Load.BatchSize = 4 })
	check("shapes of the inputs: ", func(s *profile.Setup) { s.Profile.Inputs.Shape = map[string][]int64{"other": {3}} })
	check("model name: m then, n now", func(s *profile.Setup) { s.Subject.Name = "n" })
	check("nowhere\": name the output folder of one", func(s *profile.Setup) { s.Profile.Search.Earlier = []string{"nowhere"} })
}

// The journal contains the reused campaigns, so that the campaign can be resumed without their
// folders. The same ones must be requested again.
func TestJournalHoldsWhatIsReused(t *testing.T) {
	t.Parallel()
	s := earlierSetup(t)
	dir := record(t, s, 1, measured(1), measured(2))
	s.Profile.Search.Earlier = []string{dir}
	begun, err := profile.OpenLog(s, time.Unix(2, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(begun.Close(), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	_, records, err := journal.Read(s.Profile.Output)
	if err != nil || len(records) != 3 || records[1].Kind != journal.KindEarlier {
		t.Fatalf("records %+v (%v), want header, earlier, session", records, err)
	}
	again, err := profile.OpenLog(s, time.Unix(3, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	text := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if diff := cmp.Diff(text(begun.Earlier), text(again.Earlier)); diff != "" || len(again.Earlier) != 1 || len(again.Past) != 0 {
		t.Errorf("resumed with %d earlier campaigns and %d events of its own (-begun +resumed):\n%s", len(again.Earlier), len(again.Past), diff)
	}
	s.Profile.Search.Earlier = nil
	if _, err := profile.OpenLog(s, time.Unix(4, 0)); err == nil || !strings.Contains(err.Error(), "earlier campaigns: "+dir+" then, none now") {
		t.Errorf("error is %v, want one that names the earlier campaign", err)
	}
}
