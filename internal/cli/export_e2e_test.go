//go:build linux && !noengine

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"tuner/export"
	"tuner/internal/exit"
)

// reported changes the reported figures of the model in the export in folder deploy, and returns
// them.
func (w workplace) reported(change func(*export.ManifestModel)) export.ManifestModel {
	w.t.Helper()
	m, err := export.ReadManifest(filepath.Join(w.dir, "deploy"))
	if err != nil {
		w.t.Fatal(err)
	}
	change(&m.Models[0])
	text, err := json.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join("deploy", export.ManifestName), string(text))
	return m.Models[0]
}

// throughputOf returns a change that sets the reported throughput.
func throughputOf(v float64) func(*export.ManifestModel) {
	return func(m *export.ManifestModel) { m.Throughput = export.Figure{Value: v, Lo: v, Hi: v} }
}

// An export is served, answers, and is compared with its report. It passes with figures that every
// machine reaches, and fails with others. A model that was changed since is detected.
func TestExportIsVerified(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.run(exit.OK, "profile", "-f", "profile.yaml", "--quiet")
	w.analyze()
	w.run(exit.OK, "export", "triton", "--input", w.output, "-o", "deploy")

	tuned := w.reported(throughputOf(1)).Runtime
	p := w.run(exit.OK, "export", "verify", "deploy")
	expect(t, p.stdout.String(), "passed  health: ", "passed  mlp: ready: ", "passed  mlp: metadata: ", "passed  mlp: configuration: ", "passed  mlp: inference: ",
		"passed  mlp: throughput: ", "passed  mlp: accuracy: the model is the one that was measured, in its original precision")

	w.reported(func(m *export.ManifestModel) { throughputOf(1e9)(m); m.Runtime = "openvino@0.0.1" })
	p = w.run(exit.OK, "export", "verify", "deploy")
	expect(t, p.stdout.String(), "skipped mlp: throughput: ", "on openvino@0.0.1, but this is ", ": not judged", "passed  mlp: inference: ")

	w.reported(func(m *export.ManifestModel) { m.Runtime = tuned })
	model := filepath.Join(w.dir, "deploy", "model_repository", "mlp", "1", "model.onnx")
	text, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	// adds another, empty metadata_props to the ONNX file (field 14): the same model in other bytes
	changed := append(text, 0x72, 0)
	if err := os.WriteFile(model, changed, 0o644); err != nil {
		t.Fatal(err)
	}
	p = w.run(exit.Failure, "export", "verify", "deploy")
	expect(t, p.stdout.String(), "failed  mlp: throughput: ", "more than 10 % below", "failed  mlp: accuracy: the model is not the one that was measured")
}

// The outputs of a winner in another precision are compared again with the original's, and with the
// report. int8 must win here, since the default makes every request wait for more requests that
// never come.
func TestExportedPrecisionIsVerified(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.env = []string{"TUNER_CACHE=" + filepath.Join(w.dir, "cache")}
	w.write("slow.pbtxt", "max_batch_size: 4\ndynamic_batching { max_queue_delay_microseconds: 50000 }\n")
	w.write("profile.yaml", fmt.Sprintf(`model: %q
config: slow.pbtxt
output: out
search: {strategy: grid, budget: {time: 2m, trials: 6}, window: 100ms}
space: {precision: [int8], max_queue_delay: 0}
load: {concurrency: 1}
constraints: {accuracy: {metric: cosine, min: 0.9}}
`, filepath.Join(os.Getenv("TUNER_MODELS"), "mlp.onnx")))
	w.run(exit.OK, "profile", "-f", "profile.yaml", "--quiet")
	w.analyze()
	w.run(exit.OK, "export", "triton", "--input", "out", "-o", "deploy")
	if m := w.reported(throughputOf(1)); m.Precision != "int8" || m.Cosine == nil {
		t.Fatalf("the winner is %+v, want one in int8", m)
	}
	p := w.run(exit.OK, "export", "verify", "deploy")
	same := regexp.MustCompile(`(?m)^passed  mlp: accuracy: cosine (0\.\d+) with the original on 64 rows; reported (0\.\d+)$`)
	if !same.Match(p.stdout.Bytes()) {
		t.Errorf("the accuracy did not pass:\n%s", p.stdout.String())
	}

	// A note says if the report has another value, or if there is nothing to compare.
	w.reported(func(m *export.ManifestModel) { *m.Cosine -= 0.01 })
	p = w.run(exit.Failure, "export", "verify", "deploy")
	if differs := regexp.MustCompile(`(?m)^failed  mlp: accuracy: cosine 0\.\d+ with the original on 64 rows; reported 0\.\d+$`); !differs.Match(p.stdout.Bytes()) ||
		bytes.Count(p.stdout.Bytes(), []byte("failed")) != 1 {
		t.Errorf("want the accuracy alone to fail:\n%s", p.stdout.String())
	}
}
