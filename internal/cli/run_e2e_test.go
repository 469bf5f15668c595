//go:build linux && !noengine

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tuner/internal/exit"
	"tuner/internal/programtest"
	"tuner/model/framework/frameworktest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/pipeline/steps"
)

// withoutCharts writes an analyze.yaml for a run without charts, which take longer than the
// campaign.
func (w workplace) withoutCharts(dir, input string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Join(w.dir, dir), 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join(dir, "analyze.yaml"), "input: "+input+"\nformats: [csv, config, repository, helm]\n")
}

// states reads the record of a run's steps: "convert skipped, precision ok".
func (w workplace) states(dir string) string {
	w.t.Helper()
	list, err := steps.Read(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	var states []string
	for _, s := range list {
		states = append(states, string(s.Name)+" "+string(s.State))
	}
	return strings.Join(states, ", ")
}

// stat describes a file of the campaign's output folder.
func (w workplace) stat(name string) os.FileInfo {
	w.t.Helper()
	info, err := os.Stat(filepath.Join(w.output, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return info
}

// allDone has the states of a complete run whose profile has one precision.
const allDone = "convert skipped, precision skipped, accuracy check skipped, configuration search ok, optimized model ok, repository ok, chart ok"

// After kill -9 in the middle of the search, the same command resumes and completes everything.
// Another run does nothing.
func TestKilledRunGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.withoutCharts(".", "out")
	first := w.start("run", "-f", "profile.yaml")
	engine := w.awaitTrials(first, 2)
	first.signal(syscall.SIGKILL)
	awaitGone(t, engine)
	first.exit()
	if got, want := w.states(w.output), "convert skipped, precision skipped, accuracy check skipped"; got != want {
		t.Errorf("after the kill: %s; want %s", got, want)
	}
	kept := w.trials()

	second := w.run(exit.OK, "run", "-f", "profile.yaml")
	expect(t, second.stderr.String(), "resuming after ", "7/7 chart\n  ok")
	all := w.trials()
	if got := w.states(w.output); got != allDone || len(all) != budget {
		t.Errorf("%s after %d trials, want %s after %d", got, len(all), allDone, budget)
	}
	for _, e := range searched(all[len(kept):]) {
		if slices.Contains(searched(kept), e) {
			t.Errorf("%s was measured again: it was in the journal already", e)
		}
	}
	if !os.SameFile(w.stat("repository/mlp/1/model.onnx"), w.stat("helm/model_repository/mlp/1/model.onnx")) {
		t.Error("the chart has a model of its own: a large one is there twice")
	}
	result, chart := w.stat("result.json"), w.stat("helm/export.json")
	third := w.run(exit.OK, "run", "-f", "profile.yaml")
	if n := strings.Count(third.stderr.String(), "  ok, done before"); n != 4 {
		t.Errorf("%d steps were found done, want 4; stderr:\n%s", n, third.stderr.String())
	}
	if !os.SameFile(result, w.stat("result.json")) || !os.SameFile(chart, w.stat("helm/export.json")) || len(w.trials()) != budget {
		t.Errorf("something was made again, or measured: %d trials", len(w.trials()))
	}
}

// After one Ctrl-C there are results of the finished measurements. The same command resumes the
// run.
func TestInterruptedRunIsUsable(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.withoutCharts(".", "out")
	p := w.start("run", "-f", "profile.yaml")
	engine := w.awaitTrials(p, 2)
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != exit.Interrupted {
		t.Errorf("exit code %d, want %d; stderr:\n%s", code, exit.Interrupted, p.stderr.String())
	}
	awaitGone(t, engine)
	expect(t, strings.Join(strings.Fields(p.stdout.String()), " "), "; interrupted;")
	expect(t, p.stderr.String(), "trials; the same command resumes")
	if got := w.states(w.output); !strings.Contains(got, "configuration search interrupted, optimized model interrupted, ") || !strings.HasSuffix(got, "chart ok") {
		t.Errorf("states: %s", got)
	}
	if _, err := os.Stat(filepath.Join(w.output, "result.json")); err != nil {
		t.Error(err)
	}
	w.run(exit.OK, "run", "-f", "profile.yaml")
	if got := w.states(w.output); got != allDone || len(w.trials()) != budget {
		t.Errorf("%s after %d trials, want %s after %d", got, len(w.trials()), allDone, budget)
	}
}

// A model that was exported for one request at a time is served in batches. The user's file does
// not change.
func TestRunFreesTheBatch(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.env = []string{"TUNER_CACHE=" + filepath.Join(w.dir, "cache")}
	w.withoutCharts("made", ".")
	model := filepath.Join(w.dir, "cnn.onnx")
	if err := build.CNN(1).Write(model, 0); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	p := w.run(exit.OK, "run", "cnn.onnx", "--precision", "fp32", "--budget", "3s", "-o", "made")
	expect(t, p.stderr.String(), "made/cnn.fp32.onnx is cnn.onnx with a symbolic batch dimension, and has the same outputs")
	m, err := onnx.Read(filepath.Join(w.dir, "made", "cnn.fp32.onnx"))
	if err != nil || m.Inputs()[0].Shape[0].IsFixed() {
		t.Errorf("the batch dimension is not symbolic (%v)", err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "made", "repository", "cnn", "config.pbtxt")); err != nil {
		t.Error(err)
	}
	if after, err := os.ReadFile(model); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the user's model changed (%v)", err)
	}
}

// A PyTorch file is exported once. Another file with that name is another campaign.
func TestRunExportsPyTorch(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.withoutCharts("made", ".")
	w.write("net.pt", "TorchScript")
	python := frameworktest.Python(t, build.Identity(onnx.Float), "INPUT0", "OUTPUT0", frameworktest.Status)
	args := []string{"run", "net.pt", "--in-names", "INPUT0", "--in-shapes", "[-1,-1]", "--precision", "fp32", "--budget", "2s", "-o", "made", "--python", python}
	p := w.run(exit.OK, args...)
	expect(t, p.stderr.String(), "net.pt: exporting with PyTorch", "1/7 convert\n", "made/net.onnx was exported from net.pt, and has the outputs of PyTorch")
	if _, err := os.Stat(filepath.Join(w.dir, "made", "repository", "net", "config.pbtxt")); err != nil {
		t.Error(err)
	}
	if err := os.Remove(python); err != nil {
		t.Fatal(err)
	}
	p = w.run(exit.OK, args...)
	expect(t, p.stderr.String(), "1/7 convert\n  ok, done before: made/net.onnx was exported")
	p = w.run(exit.OK, "run", "-f", "made/profile.yaml")
	expect(t, p.stderr.String(), "1/7 convert\n  ok, done before: made/net.onnx was exported")
	w.write("net.pt", "another TorchScript")
	p = w.run(exit.Usage, args...)
	expect(t, p.stderr.String(), `"net.pt" or its shapes changed after the campaign in "made" began`)
}

// export runs tuner on net.pt, whose ONNX file is made/net.onnx, with a replacement for Python. It
// returns the messages.
func (w workplace) export(want int, python string) string {
	w.t.Helper()
	p := w.run(want, "run", "net.pt", "--in-names", "INPUT0", "--in-shapes", "[-1,-1]", "--precision", "fp32", "--budget", "2s", "-o", "made", "--python", python)
	return p.stderr.String()
}

// killedExport begins a run on net.pt and kills it with kill -9 when the ONNX file has some content
// but no record of it exists yet.
func (w workplace) killedExport(content string) {
	w.t.Helper()
	w.withoutCharts("made", ".")
	w.write("net.pt", "TorchScript")
	w.write("content", content)
	python := programtest.Write(w.t, filepath.Join(w.t.TempDir(), "python"), "#!/bin/sh\ncp content made/net.onnx\nkill -9 $PPID\n")
	w.export(-1, python)
	if got, want := w.states(filepath.Join(w.dir, "made")), "convert interrupted"; got != want {
		w.t.Errorf("after the kill: %s; want %s", got, want)
	}
}

// The same command resumes after a killed and after a failed conversion, also if the model was
// edited in between.
func TestKilledConversionGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.killedExport("half a model")
	const failed = `cannot make an ONNX model of "net.pt"`
	expect(t, w.export(exit.Usage, "/bin/false"), failed)
	w.write("net.pt", "another TorchScript")
	expect(t, w.export(exit.Usage, "/bin/false"), failed)
	python := frameworktest.Python(t, build.Identity(onnx.Float), "INPUT0", "OUTPUT0", frameworktest.Status)
	expect(t, w.export(exit.OK, python), "1/7 convert\n", "made/net.onnx was exported from net.pt, and has the outputs of PyTorch")
}

// A profile can be resumed in every state of the conversion. The conversion does not count as done
// because of it.
func TestProfileWithoutTheConversion(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	model := filepath.Join(w.dir, "identity.onnx")
	writeModel(t, model, build.Identity(onnx.Float))
	content, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	w.killedExport(string(content))
	w.write("made/profile.yaml", `model: net.onnx
output: .
search: {strategy: grid, budget: {time: 1m, trials: 1}, window: 100ms}
space: {intra_op_threads: [1]}
load: {concurrency: [1], inputs: {shape: {INPUT0: [4]}}}
`)
	p := w.run(exit.OK, "run", "-f", "made/profile.yaml")
	expect(t, p.stderr.String(), "1/7 convert\n  skipped: made/profile.yaml names the file that is served")
	expect(t, w.export(exit.Usage, "/bin/false"), `changed after the campaign in "made" began`)
	if again, err := os.ReadFile(filepath.Join(w.dir, "made", "net.onnx")); err != nil || !bytes.Equal(content, again) {
		t.Errorf("the model that was measured is not there any more (%v)", err)
	}
}
