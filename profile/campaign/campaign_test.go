package campaign_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/isolation"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

const text = "model: m.onnx\nspace: {instance_count: [1, 2]}\n"

// asked makes a campaign in its own folder.
func asked(t *testing.T) campaign.Asked {
	t.Helper()
	p, err := spec.ParseProfile("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p.Output = t.TempDir()
	facts, err := json.Marshal(search.Facts{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	return campaign.Asked{Profile: p, Header: journal.Header{
		Spec: journal.NewSpecFile("p.yaml", []byte(text)), Model: "m", Facts: facts, Fingerprint: "this one",
		Runtime: journal.RuntimeInfo{Flavour: "cpu", Version: "1.31.1", Library: "lib.so"},
		Models:  []journal.ModelFile{{Precision: "fp32", SHA256: "aa"}},
	}}
}

// event makes a trial at a concurrency.
func event(concurrency int) search.Event {
	return search.Event{Trial: search.Trial{Load: measure.Load{Concurrency: concurrency, BatchSize: 1}, Phase: search.PhaseSearch},
		Measurement: measure.Measurement{Memory: 1}, Elapsed: time.Duration(concurrency) * time.Second}
}

// begin starts a journal and closes it.
func begin(t *testing.T, now campaign.Asked, learnsFrom ...search.Earlier) {
	t.Helper()
	log, err := campaign.Begin(now, learnsFrom)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.StartRun("tuner test", nil, 0), log.Close()); err != nil {
		t.Fatal(err)
	}
}

// enter continues a journal and appends one record.
func enter(t *testing.T, now campaign.Asked, kind string, value any) {
	t.Helper()
	log, err := campaign.Resume(now)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.Append(kind, value), log.Close()); err != nil {
		t.Fatal(err)
	}
}

// Read returns what was written to a journal. The end is that of the last run. A run that has begun
// after it has no end yet.
func TestReadTellsWhatWasWritten(t *testing.T) {
	t.Parallel()
	now := asked(t)
	if _, err := campaign.Read(now.Profile.Output); !errors.Is(err, fs.ErrNotExist) || campaign.Exists(now.Profile.Output) {
		t.Errorf("without a journal: error %v", err)
	}
	begin(t, now, search.Earlier{From: "first", Events: []search.Event{}})
	enter(t, now, journal.KindTrial, event(3))
	enter(t, now, journal.KindEnd, journal.End{Reason: "enough"})
	c, err := campaign.Read(now.Profile.Output)
	if err != nil || !campaign.Exists(now.Profile.Output) {
		t.Fatal(err)
	}
	if len(c.Events) != 1 || c.Events[0].Trial.Load.Concurrency != 3 || len(c.Earlier) != 1 || c.Earlier[0].From != "first" ||
		c.Facts.Cores != 2 || c.Header.Model != "m" {
		t.Errorf("read %+v", c)
	}
	if c.End == nil || c.End.Reason != "enough" {
		t.Errorf("the end is %+v", c.End)
	}
	enter(t, now, journal.KindSession, journal.Session{Tool: "tuner test"})
	if c, err = campaign.Read(now.Profile.Output); err != nil || c.End != nil {
		t.Errorf("error %v; the end is %+v while another run goes on", err, c.End)
	}
}

// A flag or a later run may have another until than the profile in the header. The last run's counts.
func TestReadHasTheUntilOfTheLastRun(t *testing.T) {
	t.Parallel()
	now := asked(t)
	check := func(want float64) {
		t.Helper()
		c, err := campaign.Read(now.Profile.Output)
		if err != nil || c.Profile.Search.Until != want {
			t.Errorf("error %v; until is %v, want %v", err, c.Profile.Search.Until, want)
		}
	}
	run := func(until float64) {
		t.Helper()
		log, err := campaign.Resume(now)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(log.StartRun("tuner test", nil, until), log.Close()); err != nil {
			t.Fatal(err)
		}
	}
	begin(t, now)
	check(0)
	run(0.3)
	check(0.3)
	enter(t, now, journal.KindSession, journal.Session{Tool: "of an older version"})
	check(0.3)
	run(0)
	check(0)
}

// A resumed campaign has the events of earlier runs, and their time.
func TestResumeReadsThePast(t *testing.T) {
	t.Parallel()
	now := asked(t)
	begin(t, now)
	enter(t, now, journal.KindTrial, event(1))
	enter(t, now, journal.KindTrial, event(2))
	log, err := campaign.Resume(now)
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Past) != 2 || log.Elapsed() != 2*time.Second {
		t.Errorf("%d events after %v, want 2 after 2s", len(log.Past), log.Elapsed())
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := campaign.Begin(now, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second journal in the folder: error %v", err)
	}
}

// A journal does not go on silently on another machine of the same type. The last run decides, so a
// machine may start again between runs. A journal without placements resumes as before.
func TestResumeElsewhere(t *testing.T) {
	t.Parallel()
	at := func(node, boot string) *hostinfo.Placement { return &hostinfo.Placement{Node: node, BootID: boot} }
	for name, c := range map[string]struct {
		header, session, now *hostinfo.Placement
		want                 string
	}{
		"the same":                {at("n1", "1"), at("n1", "1"), at("n1", "1"), ""},
		"started again":           {at("n1", "1"), at("n1", "2"), at("n1", "3"), ""},
		"another node":            {at("n1", "1"), nil, at("n2", "2"), "machine: n1 (start 1) then, n2 (start 2) now"},
		"another after a session": {nil, at("", "1"), at("", "2"), "machine: a machine without a known name (start 1) then, a machine without"},
		"an old journal":          {nil, nil, at("n2", "2"), ""},
	} {
		now := asked(t)
		now.Header.Placement = c.header
		begin(t, now)
		if c.session != nil {
			enter(t, now, journal.KindSession, journal.Session{Placement: c.session})
		}
		now.Header.Placement = c.now
		log, err := campaign.Resume(now)
		var other *campaign.OtherError
		isOther := errors.As(err, &other)
		if c.want == "" && err != nil || c.want != "" && (!isOther || !other.IsElsewhere || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v", name, err)
		}
		if checked := campaign.Check(now); (checked == nil) != (err == nil) {
			t.Errorf("%s: Check says %v, Resume %v", name, checked, err)
		}
		if err == nil {
			_ = log.Close() // only the answer matters
		}
		read, err := campaign.Read(now.Profile.Output)
		want := 0
		for _, p := range []*hostinfo.Placement{c.header, c.session} {
			if p != nil && (want == 0 || *p != *c.header) {
				want++
			}
		}
		if err != nil || len(read.Placements) != want {
			t.Errorf("%s: %d placements, want %d (%v)", name, len(read.Placements), want, err)
		}
	}
	// With another difference, the remedy is another one.
	now := asked(t)
	now.Header.Placement = at("n1", "1")
	begin(t, now)
	now.Header.Placement, now.Header.Model = at("n2", "2"), "n"
	var other *campaign.OtherError
	if _, err := campaign.Resume(now); !errors.As(err, &other) || other.IsElsewhere {
		t.Errorf("another model elsewhere: %v", err)
	}
}

// The digest depends on the trials. Records of further runs do not change it.
func TestDigestIsOfTrials(t *testing.T) {
	t.Parallel()
	now := asked(t)
	begin(t, now)
	digest := func() string {
		t.Helper()
		d, err := campaign.Digest(now.Profile.Output)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	empty := digest()
	enter(t, now, journal.KindTrial, event(1))
	one := digest()
	enter(t, now, journal.KindEnd, journal.End{})
	enter(t, now, journal.KindSession, journal.Session{})
	if again := digest(); one == empty || again != one {
		t.Errorf("digests %s of no trial, %s of one, %s after a further run", empty, one, again)
	}
}

// Each difference that prevents resuming is named separately. A campaign does not differ from
// itself.
func TestDifferencesNameWhatDiffers(t *testing.T) {
	t.Parallel()
	check := func(change func(*journal.Header), want ...string) {
		t.Helper()
		now := asked(t)
		then := now.Header
		change(&then)
		if diff := cmp.Diff(want, campaign.Differences(then, now)); diff != "" {
			t.Errorf("differences (-want +got):\n%s", diff)
		}
	}
	check(func(*journal.Header) {})
	check(func(h *journal.Header) { h.Tool, h.Created = "another version", time.Unix(5, 0) })
	check(func(h *journal.Header) { h.Spec = journal.NewSpecFile("q.yaml", []byte("# moved\n"+text)) })
	check(func(h *journal.Header) { h.Spec = journal.NewSpecFile("p.yaml", []byte(text+"search: {budget: 3m}\n")) })
	check(func(h *journal.Header) { h.Spec = journal.NewSpecFile("q.yaml", []byte(text+"search: {seed: 7}\n")) },
		"profile: p.yaml asks for another search than the journal's (q.yaml); they differ in: search")
	check(func(h *journal.Header) {
		h.Spec = journal.NewSpecFile("q.yaml", []byte("model: m.onnx\nspace: {instance_count: 3}\nconstraints: {latency_p99: {max: 7ms}}\n"))
	}, "profile: p.yaml asks for another search than the journal's (q.yaml); they differ in: space, constraints")
	check(func(h *journal.Header) {
		h.Processors = &isolation.Machine{Cores: []hostinfo.Core{{ID: 0}, {ID: 2}, {ID: 1, Node: 1}}}
	}, "processors that the models divide: 0,2 and 1 then, none now")
	check(func(h *journal.Header) { h.Model = "n" }, "model name: n then, m now")
	check(func(h *journal.Header) { h.Models = nil }, "models:  then, fp32 aa now")
	check(func(h *journal.Header) { h.Runtime.Version = "1.30.0" }, "ONNX Runtime: cpu@1.30.0 then, cpu@1.31.1 now")
	check(func(h *journal.Header) { h.Fingerprint = "that one" }, "machine: that one then, this one now")
	check(func(h *journal.Header) { h.Data = "0123456789abcdef" }, "inputs of the accuracy check: 0123456789ab then, none now")
	check(func(h *journal.Header) { h.Earlier = []string{"/out"} }, "earlier campaigns: /out then, none now")
	check(func(h *journal.Header) {
		h.Server = &journal.ServerInfo{Mode: "remote", Name: "triton", Version: "2.51.0", Where: "gpu7:8001"}
	}, "server: triton 2.51.0 at gpu7:8001 then, the bundled engine now")
	check(func(h *journal.Header) { h.Model, h.Fingerprint = "n", "that one" }, "model name: n then, m now", "machine: that one then, this one now")
}

// Who takes an input out of the examples, since its sizes are right, asks for the same search.
func TestExamplesAreNoOtherSearch(t *testing.T) {
	t.Parallel()
	parse := func(inputs string) spec.Profile {
		t.Helper()
		p, err := spec.ParseProfile("p.yaml", []byte("model: a.onnx\nload: {inputs: {"+inputs+"}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	one, other := parse("shape: {x: [7]}, examples: {x: a guess}"), parse("shape: {x: [7]}")
	if !campaign.AskSame(one, other) {
		t.Errorf("different fields: %q", campaign.DifferentFields(one, other))
	}
	if campaign.AskSame(other, parse("shape: {x: [8]}")) {
		t.Error("another shape is the same search")
	}
}

// Every field in which two profiles may differ is named, except those that the header compares.
func TestDifferentFieldsMissNone(t *testing.T) {
	t.Parallel()
	// What the header compares in its own way.
	elsewhere := []string{"Path", "Text", "Output", "Model", "Pipeline"}
	for i := range reflect.TypeFor[spec.Profile]().NumField() {
		name := reflect.TypeFor[spec.Profile]().Field(i).Name
		var a, b spec.Profile
		fill(reflect.ValueOf(&b).Elem().Field(i))
		got := campaign.DifferentFields(a, b)
		if slices.Contains(elsewhere, name) != (len(got) == 0) || campaign.AskSame(a, b) != (len(got) == 0) {
			t.Errorf("another %s: different fields %q, the same search %t", name, got, campaign.AskSame(a, b))
		}
	}
}

// fill sets every field below v to a value other than zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64, reflect.Uint8:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		if v.Type().Elem() == reflect.TypeFor[spec.Profile]() { // several models have none of their own
			v.Index(0).FieldByName("Name").SetString("x")
			return
		}
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	}
}

// The journal of another campaign is refused with all differences, and does not change.
func TestResumeRefusesAnotherCampaign(t *testing.T) {
	t.Parallel()
	now := asked(t)
	begin(t, now)
	before, err := campaign.Digest(now.Profile.Output)
	if err != nil {
		t.Fatal(err)
	}
	now.Header.Fingerprint = "that one"
	for name, refuse := range map[string]func() error{
		"Resume": func() error { _, err := campaign.Resume(now); return err },
		"Check":  func() error { return campaign.Check(now) },
	} {
		other := new(campaign.OtherError)
		if err := refuse(); !errors.As(err, &other) || len(other.Differences) != 1 || other.Dir != now.Profile.Output {
			t.Errorf("%s: error %v, want an OtherError with one difference", name, err)
		}
	}
	if after, err := campaign.Digest(now.Profile.Output); err != nil || after != before {
		t.Errorf("the journal was changed (%v)", err)
	}
}
