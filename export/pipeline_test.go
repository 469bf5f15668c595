package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/export/tuned/tunedtest"
)

// Every target gets the ensemble and its stages. Cores, memory and concurrency are those of the server.
func TestPipelineIsExported(t *testing.T) {
	t.Parallel()
	in := tunedtest.AnalyzedPipeline(t, "..")
	for _, target := range targets() {
		out := filepath.Join(t.TempDir(), "deploy")
		e, err := Write(target.name, out, defaults(in))
		if err != nil {
			t.Fatalf("%s: %v", target.name, err)
		}
		d := e.Deployment
		// the 2 cores of the machine; 290 MB × 1.3 + 256 MiB, in steps of 64 MiB; a request waits 5 ms in queues, which is
		// the mean of three requests to models
		if len(d.Models) != 1 || d.Name != "search" || d.CPUs != 2 || d.Memory != 640 || d.Concurrency != 16 {
			t.Errorf("%s: %s with %d models, %d cores, %d MiB, concurrency %d", target.name, d.Name, len(d.Models), d.CPUs, d.Memory, d.Concurrency)
		}
		for _, name := range []string{"tokenizer", "minilm", "search"} {
			if _, err := os.Stat(filepath.Join(out, d.repository(), name, "config.pbtxt")); err != nil {
				t.Errorf("%s: %v", target.name, err)
			}
			if path := filepath.Join(d.repository(), name); !strings.Contains(strings.Join(e.Files, " "), path) {
				t.Errorf("%s: %q lacks %s", target.name, e.Files, path)
			}
		}
	}
}

// The stages are in the readiness probe, the alerts, the README and export.json.
func TestPipelineIsWatched(t *testing.T) {
	t.Parallel()
	in, out := tunedtest.AnalyzedPipeline(t, ".."), filepath.Join(t.TempDir(), "deploy")
	o := defaults(in)
	o.ControlMode = ControlExplicit
	if _, err := Write(Kubernetes, out, o); err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Models) != 1 || len(m.Models[0].Stages) != 2 || m.Models[0].Stages[0].SHA256 != "abtokenizer" || m.Models[0].Precision != "fp32" {
		t.Errorf("export.json has %+v", m.Models)
	}
	var names []string
	for _, f := range m.Models[0].Folders() {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "tokenizer minilm search" {
		t.Errorf("folders %s", got)
	}
	files := tree(t, out, in)
	for name, wants := range map[string][]string{
		"manifests/deployment.yaml": {"/v2/models/tokenizer/ready", "/v2/models/minilm/ready", "/v2/models/search/ready",
			"--load-model=tokenizer", "--load-model=minilm", "--load-model=search"},
		"README.md": {"| search | pipeline of the following |  | concurrency 16 | ", "| tokenizer | backend identity | 2 | from search | | | in the above |",
			"| minilm | fp32 on cpu | 2 × 1 thread | from search | | | in the above |", "minutes to load its models."},
		"monitoring/alerts.yml": {`nv_inference_queue_duration_us{model=~"search|tokenizer|minilm"}[5m])) / sum without (model, version, gpu_uuid) (rate(nv_inference_request_success{model="search"}[5m]))`},
	} {
		for _, want := range wants {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s lacks %q:\n%s", name, want, files[name])
			}
		}
	}
}

// A stage has the name of another model of the server.
func TestStageOfTheSameName(t *testing.T) {
	t.Parallel()
	const want = `both have a model "minilm"`
	if _, err := Write(Triton, filepath.Join(t.TempDir(), "deploy"), defaults(analyzed(t), tunedtest.AnalyzedPipeline(t, ".."))); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
