//go:build linux && !noengine

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tuner/export"
	"tuner/internal/exit"
)

// reported changes the reported figures of the models in the export in folder deploy, and returns
// those of the first.
func (w workplace) reported(change func(*export.ManifestModel)) export.ManifestModel {
	w.t.Helper()
	m, err := export.ReadManifest(filepath.Join(w.dir, "deploy"))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range m.Models {
		change(&m.Models[i])
	}
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

// All models of a campaign are exported into one repository, and verified under load together: each against its
// own figures and limits.
func TestExportOfSeveralModelsIsVerified(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.write("profile.yaml", severalText(os.Getenv("TUNER_MODELS"), w.output))
	w.run(exit.OK, "profile", "-f", "profile.yaml", "--quiet")
	w.analyze()
	w.run(exit.OK, "export", "triton", w.output, "-o", "deploy")

	w.reported(throughputOf(1))
	p := w.run(exit.OK, "export", "verify", "deploy")
	expect(t, p.stdout.String(), "passed  health: ", "passed  mlp: ready: ", "passed  cnn: ready: ", "passed  mlp: inference: ", "passed  cnn: inference: ",
		"passed  mlp: throughput: ", "passed  mlp: limits: p99 ≤ ", "passed  cnn: throughput: ", "passed  cnn: limits: p99 ≤ ",
		"passed  mlp: accuracy: the model is the one that was measured", "passed  cnn: accuracy: the model is the one that was measured")

	impossible := 1e-9
	w.reported(func(m *export.ManifestModel) {
		if m.Name == "cnn" {
			m.Limits[0].Max = &impossible
		}
	})
	p = w.run(exit.Failure, "export", "verify", "deploy")
	expect(t, p.stdout.String(), "passed  mlp: limits: ", "failed  cnn: limits: ", ", missed")

	w.reported(func(m *export.ManifestModel) { m.Machine = "another" })
	p = w.run(exit.OK, "export", "verify", "deploy")
	expect(t, p.stdout.String(), "skipped mlp: throughput: ", "skipped cnn: limits: ", " on another machine: not judged")
}

// exportInt8 makes an export of a campaign with a load, whose winner is in int8. int8 must win, since
// the default makes every request wait ten times as long for more requests that never come.
func (w workplace) exportInt8(load string) {
	w.t.Helper()
	w.write("slow.pbtxt", "max_batch_size: 4\ndynamic_batching { max_queue_delay_microseconds: 50000 }\n"+
		`parameters { key: "intra_op_thread_count" value { string_value: "1" } }`)
	w.write("profile.yaml", fmt.Sprintf(`model: %q
config: slow.pbtxt
output: out
search: {strategy: grid, budget: {time: 2m, trials: 6}, window: 100ms}
space: {precision: [int8], max_queue_delay: 5ms}
load: %s
constraints: {accuracy: {metric: cosine, min: 0.9}}
`, filepath.Join(os.Getenv("TUNER_MODELS"), "mlp.onnx"), load))
	w.run(exit.OK, "profile", "-f", "profile.yaml", "--quiet")
	w.analyze()
	w.run(exit.OK, "export", "triton", "--input", "out", "-o", "deploy")
	if m := w.reported(throughputOf(1)); m.Precision != "int8" || m.Cosine == nil {
		w.t.Fatalf("the winner is %+v, want one in int8", m)
	}
}

// The outputs of a winner in another precision are compared again with the original's, and with the
// report.
func TestExportedPrecisionIsVerified(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.env = []string{"TUNER_CACHE=" + filepath.Join(w.dir, "cache")}
	w.exportInt8("{concurrency: 1}")
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

// An export is verified with the rows of its campaign. Without the same rows, figures that depend on
// them are not judged.
func TestExportOfRowsIsVerified(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.env = []string{"TUNER_CACHE=" + filepath.Join(w.dir, "cache")}
	row := func(v string) string { return fmt.Sprintf(`{"INPUT": [%s%s]}`, v, strings.Repeat(", 0.5", 63)) }
	rows := func(values ...string) string {
		for i, v := range values {
			values[i] = row(v)
		}
		return `{"data": [` + strings.Join(values, ", ") + `]}`
	}
	w.write("rows.json", rows("1", "2", "3"))
	w.exportInt8("{concurrency: 1, inputs: {data: rows.json}}")
	p := w.run(exit.OK, "export", "verify", "deploy")
	expect(t, p.stdout.String(), "passed  mlp: throughput: ", "passed  mlp: accuracy: cosine ", "with the original on 3 rows")

	w.write("rows.json", rows("1", "2", "4"))
	p = w.run(exit.OK, "export", "verify", "deploy")
	expect(t, p.stdout.String(), "with random values, since the campaign's rows (rows.json) have changed: not judged",
		"skipped mlp: accuracy: the campaign's rows (rows.json) have changed")

	if err := os.Remove(filepath.Join(w.dir, "rows.json")); err != nil {
		t.Fatal(err)
	}
	p = w.run(exit.OK, "export", "verify", "deploy")
	expect(t, p.stdout.String(), "since the campaign's rows (rows.json) are gone: not judged", "skipped mlp: accuracy: the campaign's rows (rows.json) are gone")
}
