package compare

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/profile/campaign"
	"tuner/report/result"
	"tuner/search"
)

// The outputs of the project's own verbs, as their golden files have them, can be read.
func TestRead(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]struct {
		kind   Kind
		config string
		value  float64
	}{
		// ten pairs with 190 infer/s each, except for the noise of the golden file
		"../gate/output/testdata/pass.gate.json": {Gate, "candidate", 190},
		"../perf/output/testdata/closed.json":    {Perf, "", 0},
		"../report/testdata/found.json":          {Campaign, "", 0},
	} {
		r, err := Read(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if r.Kind != want.kind || len(r.Configurations) == 0 || len(r.Configurations[0].Points) == 0 {
			t.Errorf("%s: %s with %d configurations", path, r.Kind, len(r.Configurations))
			continue
		}
		first := r.Configurations[0]
		if v := first.Points[0].Values[measure.Throughput].Value; v <= 0 || want.value > 0 && (v < 0.99*want.value || v > 1.01*want.value) {
			t.Errorf("%s: %s has %g infer/s", path, first.Name, v)
		}
	}
}

// A gate of several models has the files and the figures of each.
func TestReadGateOfSeveralModels(t *testing.T) {
	t.Parallel()
	r, err := Read("../gate/output/testdata/several.gate.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]measure.Metric{"encoder.latency_p99", "ranker.throughput", measure.Memory}, shownIn(r, r)); diff != "" {
		t.Errorf("shown metrics (-want +got):\n%s", diff)
	}
	for _, fact := range []string{"model file, candidate encoder", "model file, baseline ranker"} {
		if r.Facts[fact] != "d1" {
			t.Errorf("%s is %q", fact, r.Facts[fact])
		}
	}
	if v := r.Configurations[0].Points[0].Values["ranker.throughput"].Value; v < 890 || v > 910 { // 899 infer/s in each pair
		t.Errorf("the candidate's ranker has %g infer/s", v)
	}
}

func TestReadErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"empty.json": "", "list.json": "[1]", "other.json": "{}", "old.json": `{"configurations": [], "format": 99}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"nowhere":    "name the output folder",
		".":          "has neither result.json nor gate.json",
		"empty.json": "is not a result of tuner", "list.json": "is not a result of tuner", "other.json": "neither configurations, criteria nor levels",
		"old.json": "format is 99",
	} {
		if _, err := Read(filepath.Join(dir, path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// A run whose file has no time has none, and not the year 1.
func TestRunsWithoutTime(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"format": 1, "settings": {"model": "m"}, "levels": [{"load": {"concurrency": 1}}, {"load": {"concurrency": 2}, "begin": "2026-11-27T10:00:00+01:00"}]}`,
		`{"format": 1, "settings": {"model": "m"}, "levels": [{"load": {"concurrency": 1}}]}`,
		`{"schema": 1, "name": "m", "verdict": "pass", "criteria": [], "load": {"concurrency": 1}, "values": []}`,
	} {
		r, err := Parse("x.json", []byte(text))
		want := ""
		if strings.Contains(text, "begin") {
			want = "2026-11-27T09:00:00Z" // UTC
		}
		if err != nil || r.Created != want {
			t.Errorf("%s: began %q (%v), want %q", text, r.Created, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, path := range []string{"../gate/output/testdata/pass.gate.json", "../perf/output/testdata/closed.json"} {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"configurations": [{"points": [{"values": {"throughput": {"value": 1e308, "lo": -1}}}]}], "format": 1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Parse("x.json", text)
		if err != nil {
			return
		}
		// Any run compares with itself, and shows no change.
		for _, p := range Of([]Run{r, r}, measure.AssumedSpread).Pairs {
			for _, c := range p.Changes {
				if c.Key == r.Configurations[0].Key && c.Direction != NotShown {
					t.Errorf("%+v against itself", c)
				}
			}
		}
	})
}

// servedBy returns a campaign as if these servers had measured it. Without text the server is the bundled engine, and
// the finals were on the same one.
func servedBy(t *testing.T, server, finals string) Run {
	t.Helper()
	text, err := os.ReadFile("../report/testdata/found.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := result.Parse("found.json", text)
	if err != nil {
		t.Fatal(err)
	}
	if server != "" {
		err = json.Unmarshal([]byte(server), &r.Origin.Server)
	}
	if finals != "" {
		err = errors.Join(err, json.Unmarshal([]byte(finals), &r.Origin.Finals))
	}
	for _, c := range r.Configurations {
		for i := range c.Points { // as report/json names them
			switch {
			case finals != "" && c.Points[i].Confirmed:
				c.Points[i].Server = r.Origin.Finals.String()
			case server != "" || finals != "":
				c.Points[i].Server = r.Origin.Server.String()
			}
		}
	}
	text, other := json.Marshal(r)
	run, third := Parse("found.json", text)
	if err := errors.Join(err, other, third); err != nil {
		t.Fatal(err)
	}
	return run
}

// Runs compare whatever server they measured, as they do whatever machine. A run of two servers has figures of each.
// Beside it a run of one server has only those of the same server.
func TestRunsOfOtherServers(t *testing.T) {
	t.Parallel()
	const (
		old   = `{"mode": "remote", "where": "host:8001", "name": "triton", "version": "2.50.0"}`
		newer = `{"mode": "remote", "where": "pod:8001", "name": "triton", "version": "2.51.0"}`
	)
	for name, c := range map[string]struct {
		a, b     [2]string // search, finals
		isNoted  bool
		confined string // the role of all changes; "" if all configurations and loads are common
	}{
		"one server":                {[2]string{old}, [2]string{old}, false, ""},
		"two versions":              {[2]string{old}, [2]string{newer}, true, ""},
		"the engine and a Triton":   {[2]string{}, [2]string{old}, true, ""},
		"two versions, finals":      {[2]string{"", old}, [2]string{"", newer}, true, ""},
		"finals beside one server":  {[2]string{"", old}, [2]string{old}, true, "finals"},
		"search beside the engine":  {[2]string{}, [2]string{"", old}, true, "search"},
		"finals beside another one": {[2]string{"", old}, [2]string{newer}, true, "none"},
	} {
		p := Of([]Run{servedBy(t, c.a[0], c.a[1]), servedBy(t, c.b[0], c.b[1])}, measure.AssumedSpread).Pairs[0]
		if isAll := len(p.Changes) > 0 && len(p.OnlyA)+len(p.OnlyB) == 0; isAll != (c.confined == "") {
			t.Errorf("%s: %d changes, only %v and %v", name, len(p.Changes), p.OnlyA, p.OnlyB)
		}
		if c.confined != "" && (len(p.Changes) == 0) != (c.confined == "none") {
			t.Errorf("%s: %d changes", name, len(p.Changes))
		}
		for _, change := range p.Changes {
			if c.confined != "" && change.Server != c.confined || c.a[1] == "" && c.b[1] == "" && change.Server != "" {
				t.Errorf("%s: a change of server %q", name, change.Server)
			}
		}
		if isNoted := slices.Contains(p.Notes, "The servers differ, so the changes are theirs too."); isNoted != c.isNoted {
			t.Errorf("%s: notes %q", name, p.Notes)
		}
	}
}

// The samples of a point are the windows of its server: the final trials measured that of the finals.
func TestSamplesOfTwoServers(t *testing.T) {
	t.Parallel()
	const dir = "../testdata/journals/guided"
	c, err := campaign.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	windows := map[bool]int{} // by whether the trial is final
	isFinal := func(e search.Event) bool { return e.Trial.Phase == search.PhaseFinal }
	last := c.Events[slices.IndexFunc(c.Events, isFinal)].Trial
	for _, e := range c.Events {
		if e.Trial.Candidate.Key() == last.Candidate.Key() && e.Trial.Load == last.Load {
			windows[isFinal(e)] += len(e.Measurement.Windows)
		}
	}
	if windows[false] == 0 || windows[true] == 0 {
		t.Fatalf("the journal has windows %v", windows)
	}
	for name, points := range map[string][]Point{
		"one server": {{Load: last.Load}}, "two servers": {{Load: last.Load, Server: "search"}, {Load: last.Load, Server: "finals"}},
	} {
		run := Run{Configurations: []Configuration{{Key: keyOf(last.Candidate), Points: points}}}
		if err := addSamples(&run, dir); err != nil {
			t.Fatal(err)
		}
		want := []int{windows[false] + windows[true]}
		if len(points) > 1 {
			want = []int{windows[false], windows[true]}
		}
		for i, p := range points {
			if len(p.Samples()) != want[i] {
				t.Errorf("%s: %d samples of point %d, want %d", name, len(p.Samples()), i, want[i])
			}
		}
	}
}

// A service trial measures batches of each size. Its windows are no samples of the load at which it sends them.
func TestServiceTrialsAreNoSamples(t *testing.T) {
	t.Parallel()
	const dir = "../testdata/journals/guided"
	c, err := campaign.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	trials := 0
	for _, e := range c.Events {
		if e.Trial.Phase != search.PhaseService {
			continue
		}
		trials++
		run := Run{Configurations: []Configuration{{Key: keyOf(e.Trial.Candidate), Points: []Point{{Load: e.Trial.Load}}}}}
		if err := addSamples(&run, dir); err != nil {
			t.Fatal(err)
		}
		if n := len(run.Configurations[0].Points[0].Samples()); n > 0 { // nothing else was measured there
			t.Errorf("%s at %s has %d samples", e.Trial.Candidate.Key(), e.Trial.Load, n)
		}
	}
	if trials == 0 {
		t.Error("the journal has no service trial")
	}
}
