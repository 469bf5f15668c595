package compare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
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
