//go:build linux && !noengine

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"tuner/export"
)

// An export is served, answers, and is compared with its report: with figures that any machine reaches it passes, with others it fails, and a
// model that was changed since is found out.
func TestExportIsVerified(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.run(exitOK, "profile", "-f", "profile.yaml", "--quiet")
	w.analyze()
	w.run(exitOK, "export", "triton", "--input", w.output, "-o", "deploy")
	path := filepath.Join(w.dir, "deploy", export.ManifestName)
	report := func(throughput float64) {
		t.Helper()
		m, err := export.ReadManifest(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		m.Models[0].Throughput = export.Figure{Value: throughput, Lo: throughput, Hi: throughput}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	look := func(p *program, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if !bytes.Contains(p.stdout.Bytes(), []byte(line)) {
				t.Errorf("stdout lacks %q:\n%s", line, p.stdout.String())
			}
		}
	}

	report(1)
	look(w.run(exitOK, "export", "verify", "deploy"), "passed  health: ", "passed  mlp: ready: ", "passed  mlp: metadata: ",
		"passed  mlp: configuration: ", "passed  mlp: inference: ", "passed  mlp: throughput: ",
		"passed  mlp: accuracy: the model is the one that was measured, in its original precision")

	report(1e9)
	model := filepath.Join(w.dir, "deploy", "model_repository", "mlp", "1", "model.onnx")
	text, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	changed := append(text, 0x72, 0) // another, empty metadata_props of the ONNX file (field 14): the same model in other bytes
	if err := os.WriteFile(model, changed, 0o644); err != nil {
		t.Fatal(err)
	}
	look(w.run(exitFailure, "export", "verify", "deploy"), "failed  mlp: throughput: ", "more than 10 % below",
		"failed  mlp: accuracy: the model is not the one that was measured")
}
