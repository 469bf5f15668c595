package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/export/tuned/tunedtest"
)

// analyzedTwo makes an output folder of `tuner analyze` from package report's golden result of two models.
func analyzedTwo(t *testing.T) string {
	t.Helper()
	return tunedtest.Analyzed(t, "..", tunedtest.Two)
}

// Every target gets one server with all models of a campaign. Cores and memory are those of the server, and
// count once.
func TestModelsOfOneCampaignBecomeOneServer(t *testing.T) {
	t.Parallel()
	in := analyzedTwo(t)
	for _, target := range targets() {
		o := defaults(in)
		out := filepath.Join(t.TempDir(), "deploy")
		e, err := Write(target.name, out, o)
		if err != nil {
			t.Fatalf("%s: %v", target.name, err)
		}
		d := e.Deployment
		// 2 cores of the machine; 330 MB × 1.3 + 256 MiB, in steps of 64 MiB; 180 requests/s of 16.6 ms are
		// 3 requests in flight, beside the 6 of the ranker
		if len(d.Models) != 2 || d.CPUs != 2 || d.Memory != 704 || d.Concurrency != 9 {
			t.Errorf("%s: %s with %d models, %d cores, %d MiB, concurrency %d", target.name, d.Name, len(d.Models), d.CPUs, d.Memory, d.Concurrency)
		}
		for _, name := range []string{"encoder", "ranker"} {
			if _, err := os.Stat(filepath.Join(out, d.repository(), name, "config.pbtxt")); err != nil {
				t.Errorf("%s: %v", target.name, err)
			}
		}
		notes := strings.Join(d.Notes, "\n")
		if !strings.Contains(notes, `The result of model "encoder" and model "ranker" is: unfinished; all limits kept: >99 %.`) || strings.Contains(notes, "cores together") {
			t.Errorf("%s: notes %q", target.name, d.Notes)
		}
	}
}

// A campaign of several models, and one of another model, become one server: the sum of both.
func TestCampaignsOfSeveralModelsAndOfOneAreAdded(t *testing.T) {
	t.Parallel()
	e, err := Write(Kubernetes, filepath.Join(t.TempDir(), "deploy"), defaults(analyzed(t), analyzedTwo(t)))
	if err != nil {
		t.Fatal(err)
	}
	d := e.Deployment
	// 2 cores of each campaign; (290 MB + 330 MB) × 1.3 + 256 MiB = 1,025 MiB, in steps of 64 MiB
	if len(d.Models) != 3 || d.CPUs != 4 || d.Memory != 1088 {
		t.Errorf("%d models, %d cores, %d MiB", len(d.Models), d.CPUs, d.Memory)
	}
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, "The models get 4 cores together, but each campaign had a machine with 2 to itself.") {
		t.Errorf("notes %q", d.Notes)
	}
}

// Both models are in the readiness probe, the alerts, the README and export.json, each with its own figures.
func TestModelsOfOneCampaignAreWatched(t *testing.T) {
	t.Parallel()
	in, out := analyzedTwo(t), filepath.Join(t.TempDir(), "deploy")
	if _, err := Write(Kubernetes, out, defaults(in)); err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Models) != 2 || !m.Models[0].Together || !m.Models[1].Together || m.Models[1].Load.Concurrency != 6 || len(m.Models[1].Limits) != 1 {
		t.Errorf("export.json has %+v", m.Models)
	}
	files := tree(t, out, in)
	for name, wants := range map[string][]string{
		"manifests/deployment.yaml": {"http://localhost:8000/v2/models/encoder/ready", "http://localhost:8000/v2/models/ranker/ready"},
		// 90 % of 180 requests/s, and of 2038.5 inferences/s in requests of 2
		"README.md": {"| encoder | fp32 on cpu | 2 × all cores | 180 requests/s | ", " | 330 MB |", "| ranker | fp32 on cpu | 2 × all cores | concurrency 6 × batch 2 | ", " | in the above |",
			"| encoder | 162 | ", "| ranker | 917.3 | "},
		"monitoring/alerts.yml": {`model="encoder"`, `model="ranker"`},
	} {
		for _, want := range wants {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s lacks %q:\n%s", name, want, files[name])
			}
		}
	}
}

// A plan counts servers of one model.
func TestPlanOfSeveralModels(t *testing.T) {
	t.Parallel()
	o := withPlan(t, hpa)
	o.Inputs = []string{analyzedTwo(t)}
	const want = "--plan: a plan is for servers of one model, and this export has 2; leave it out, and choose --replicas"
	if _, err := Write(Kubernetes, filepath.Join(t.TempDir(), "deploy"), o); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
