package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/analyze/analyzetest"
	"tuner/internal/exit"
	"tuner/model/onnx"
	"tuner/report/reporttest"
)

// ofTwo writes the journal of two models into a folder, with their model files.
func ofTwo(t *testing.T) string {
	t.Helper()
	c := analyzetest.OfTwo(t).Campaign()
	dir := t.TempDir()
	for i := range c.Header.Parts {
		path := filepath.Join(dir, c.Header.Parts[i].Model+".onnx")
		reporttest.CopyFile(t, "../../testdata/ort/add_sub.onnx", path)
		model, err := onnx.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := model.Digest()
		if err != nil {
			t.Fatal(err)
		}
		file := &c.Header.Parts[i].Models[0]
		file.Path, file.SHA256 = path, digest
	}
	out := filepath.Join(dir, "out")
	analyzetest.WriteJournal(t, c, out)
	return out
}

// The verbs after a campaign take one of several models, or say why they do not and what to do.
func TestVerbsOnSeveralModels(t *testing.T) {
	t.Parallel()
	out := ofTwo(t)
	run := func(code int, want []string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		got := Main(args, strings.NewReader(""), &stdout, &stderr)
		said := strings.Join(strings.Fields(stdout.String()+stderr.String()), " ")
		if got != code {
			t.Errorf("%v: exit code %d, want %d:\n%s", args, got, code, said)
		}
		for _, text := range want {
			if !strings.Contains(said, text) {
				t.Errorf("%v does not say %q:\n%s", args, text, said)
			}
		}
	}
	run(exit.OK, []string{"this traffic can grow 3 ×", "encoder: 180 requests/s; p99 ", "ranker: concurrency 6 × batch 2, "}, "analyze", out)
	for _, name := range []string{"optimal/encoder/config.pbtxt", "optimal/ranker/config.pbtxt", "repository/encoder/1/model.onnx", "repository/ranker/config.pbtxt",
		"plots/limits_vs_scale.png", "report.html"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
	run(exit.OK, []string{"All are compared at scale=2"}, "analyze", out, "--at", "scale=2")
	run(exit.Usage, []string{"nothing was measured at scale=7; figures exist at scale=0.5, "}, "analyze", out, "--at", "scale=7")
	run(exit.OK, []string{"encoder p99"}, "analyze", out, "--mode", "online")
	run(exit.Usage, []string{"top3-mean is a mean of one model's throughputs, and the campaign has several models"}, "analyze", out, "--rank", "top3-mean")
	file := filepath.Join(out, "..", "analyze.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("input: out\noutput: other\nconstraints: {encoder.p99: 20ms, ranker.latency_p99: 5ms}\n")
	run(exit.OK, []string{"encoder p99 ≤ 20 ms, ranker p99 ≤ 5 ms kept"}, "analyze", "-f", file)
	write("input: out\nconstraints: {latency_p99: 20ms}\n")
	run(exit.Usage, []string{"latency_p99 is a metric of one model, and the campaign has several: write encoder.latency_p99"}, "analyze", "-f", file)
	run(exit.OK, nil, "analyze", out)

	run(exit.OK, []string{"The winner is the same", "The winner keeps the limits at scale 3 in "}, "compare", out, filepath.Join(out, "../other"))
	deploy := filepath.Join(out, "../deploy")
	run(exit.OK, []string{"model_repository/encoder", "model_repository/ranker"}, "export", "kubernetes", out, "-o", deploy)
	run(exit.Usage, []string{
		"is of several models on one server, and a plan is for one model",
		"hint: a server carries the traffic of the profile × 3 by this result, so your highest traffic over that is the number of servers",
	}, "plan", out, "--traffic", "peak 400/s")
}
