package main

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tuner/onnx/build"
	"tuner/search"
	"tuner/spec"
)

// sweepFor reads the sweep of a command line, as `tuner ortsweep` does.
func sweepFor(args ...string) (spec.Sweep, error) {
	var o sweepOptions
	cmd := &cobra.Command{}
	o.flags(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		return spec.Sweep{}, err
	}
	return readSweep(console{out: io.Discard, err: io.Discard}, o)
}

// folderWith makes a folder with Triton's example model (two inputs, INT32[-1,16]) and files.
func folderWith(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := build.Simple().Write(filepath.Join(dir, "simple.onnx"), 1<<20); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A flag that is given goes before OLive's configuration, whatever its value.
func TestFlagsGoBeforeOlive(t *testing.T) {
	t.Parallel()
	dir := folderWith(t, map[string]string{"olive.json": `{"model_path": "simple.onnx", "result_path": "results",
		"input_names": ["INPUT0"], "input_shapes": [[4, 16]], "throughput_tuning_enabled": true, "dynamic_batching_size": 8, "concurrency_num": 2,
		"intra_thread_num_list": [1, 2], "sample_input_data_path": "data.npz", "quantization_enabled": true}`})
	config := filepath.Join(dir, "olive.json")
	s, err := sweepFor("--olive", config)
	if err != nil {
		t.Fatal(err)
	}
	if s.Batch != 8 || s.Sessions != 2 || s.Measure != spec.SweepThroughput {
		t.Errorf("batch %d, sessions %d, measure %q, want OLive's", s.Batch, s.Sessions, s.Measure)
	}
	if want := filepath.Join(dir, "data.npz"); s.Accuracy.Data != want || s.Output != filepath.Join(dir, "results") {
		t.Errorf("data %q, output %q, want them beside the configuration", s.Accuracy.Data, s.Output)
	}
	s, err = sweepFor("--olive", config, "--batch", "1", "--sessions", "1", "--data", "mine.npz", "-o", "there", "--knob", "intra_op_threads=4")
	if err != nil {
		t.Fatal(err)
	}
	if s.Batch != 1 || s.Sessions != 1 || s.Accuracy.Data != "mine.npz" || s.Output != "there" {
		t.Errorf("batch %d, sessions %d, data %q, output %q, want the flags'", s.Batch, s.Sessions, s.Accuracy.Data, s.Output)
	}
	knobs := map[string]search.Value{}
	for _, k := range s.Knobs {
		knobs[k.Name] = k.Values[len(k.Values)-1]
	}
	if knobs[search.KnobIntraOpThreads] != "4" || knobs[search.KnobPrecision] != "int8" {
		t.Errorf("the last values are %v, want the flag's threads and OLive's precisions", knobs)
	}
}

// A size in place of -1 is the batch, unless a flag says another.
func TestBatchOfShapes(t *testing.T) {
	t.Parallel()
	model := filepath.Join(folderWith(t, nil), "simple.onnx")
	for batch, more := range map[int][]string{1: {"--in-shapes", "[[1,16],[-1,16]]"}, 4: {"--in-shapes", "[[4,16],[-1,16]]"},
		2: {"--in-shapes", "[[4,16],[4,16]]", "--batch", "2"}} {
		s, err := sweepFor(append([]string{"-m", model, "--in-names", "INPUT0,INPUT1"}, more...)...)
		if err != nil || s.Batch != batch {
			t.Errorf("%q: batch %d, %v, want %d", more, s.Batch, err, batch)
		}
	}
}

// What is given is read, even where it is as if nothing were, and mistakes name the flag.
func TestBadFlagsAreNamed(t *testing.T) {
	t.Parallel()
	dir := folderWith(t, map[string]string{"sweep.yaml": "model: simple.onnx"})
	model, file := filepath.Join(dir, "simple.onnx"), filepath.Join(dir, "sweep.yaml")
	for want, args := range map[string][]string{
		"--budget 0s: it must be 1s or longer":         {"-m", model, "--budget", "0s"},
		"--budget -3s: it must be 1s or longer":        {"-f", file, "--budget", "-3s"},
		"--batch contradicts -f":                       {"-f", file, "--batch", "0"},
		"--out-names contradicts -f":                   {"-f", file, "--out-names", "a"},
		"command line: --batch: is out of range":       {"-m", model, "--batch", "0"},
		"command line: --sessions: contradicts":        {"-m", model, "--sessions", "2"},
		"command line: --knob max_batches: is neither": {"-m", model, "--knob", "max_batches=1"},
		"command line: --knob: instance_count is no":   {"-m", model, "--knob", "instance_count=1"},
		`--shape "INPUT0:0": "0" is no size`:           {"-m", model, "--shape", "INPUT0:0"},
		"absent.onnx\": no such file or directory":     {"-m", filepath.Join(dir, "absent.onnx")},
		"shape [4 8] for input INPUT0":                 {"-m", model, "--in-names", "INPUT0", "--in-shapes", "[4,8]"},
	} {
		_, err := sweepFor(args...)
		if err == nil || !strings.Contains(err.Error(), want) || exitCode(err) != exitUsage {
			t.Errorf("%q: exit code %d, error %v, want %q", args, exitCode(err), err, want)
		}
	}
}

// The file that flags stand for says the same from wherever it is read.
func TestSweepOfFlagsCanBeRunAgain(t *testing.T) {
	t.Parallel()
	dir := folderWith(t, map[string]string{"data.npz": ""})
	first, err := sweepFor("-m", filepath.Join(dir, "simple.onnx"), "--data", "data.npz", "--budget", "5s", "--measure", "throughput", "--sessions", "2")
	if err != nil {
		t.Fatal(err)
	}
	again, err := spec.ParseSweep(filepath.Join(dir, "elsewhere", "ortsweep.yaml"), first.Text)
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if again.Model.Path != first.Model.Path || again.Accuracy.Data != filepath.Join(here, "data.npz") || again.Output != filepath.Join(here, first.Output) {
		t.Errorf("model %q, data %q, output %q", again.Model.Path, again.Accuracy.Data, again.Output)
	}
	if again.Sessions != 2 || again.Measure != spec.SweepThroughput || !reflect.DeepEqual(again.Search, first.Search) {
		t.Errorf("sessions %d, measure %q, search %+v", again.Sessions, again.Measure, again.Search)
	}
}
