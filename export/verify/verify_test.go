package verify

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/export"
	"tuner/internal/exit"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/model/onnx"
	"tuner/runner/payload"
)

// Requests have the shapes of the warm-up, both if the server batches and if the batch dimension is
// a part of the request.
func TestShapes(t *testing.T) {
	t.Parallel()
	check := func(name, model, config string, want map[string][]int64) {
		t.Helper()
		m, err := onnx.Read(filepath.Join("../../testdata/ort", model))
		if err != nil {
			t.Fatal(err)
		}
		c, err := modelconfig.Parse(name, []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, shapes(m, c)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	warmUp := func(dims string) string {
		return `model_warmup { name: "batch_1" batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: ` + dims + ` random_data: true } } }`
	}
	check("batching", "add_sub.onnx", "max_batch_size: 8 "+warmUp("[4]"), map[string][]int64{"x": {4}})
	check("its own batch dimension", "add_sub.onnx", warmUp("[1, 4]"), map[string][]int64{"x": {4}})
	mine := `model_warmup { name: "mine" batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: [7] random_data: true } } } `
	check("behind the user's own", "add_sub.onnx", "max_batch_size: 8 "+mine+warmUp("[4]"), map[string][]int64{"x": {4}})
	check("the user's own alone", "add_sub.onnx", "max_batch_size: 8 "+mine, map[string][]int64{})
	check("a scalar", "scalar.onnx", warmUp("[1]"), map[string][]int64{})
	check("no warm-up", "add_sub.onnx", "max_batch_size: 8", map[string][]int64{})
}

// A busy machine is a reason to trust a throughput less. Each disturbance is named once.
func TestDoubts(t *testing.T) {
	t.Parallel()
	if got := doubts([]measure.Window{{}, {}}); got != "" {
		t.Errorf("quiet windows: %q", got)
	}
	windows := []measure.Window{{Flags: []measure.Flag{measure.FlagForeign}}, {Flags: []measure.Flag{measure.FlagForeign, measure.FlagSteal}}}
	if got, want := doubts(windows), "; less certain: "+measure.FlagForeign.Text()+", "+measure.FlagSteal.Text(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Throughput is judged only on the measured machine and ONNX Runtime.
func TestJudge(t *testing.T) {
	t.Parallel()
	check := func(machine, runtime string, hi float64, status Status, text string) {
		t.Helper()
		v := verifier{options: Options{Fingerprint: "here"}}
		s := subject{build: Build{Name: "cpu@1.31.1"}, reported: export.ManifestModel{
			Machine: machine, Runtime: runtime, Load: measure.Load{Concurrency: 1, BatchSize: 1}, Throughput: export.Figure{Value: 100}}}
		got, why := v.judge(s, measure.Estimate{Value: 80, Lo: 70, Hi: hi})
		if got != status || !strings.HasSuffix(why, text) {
			t.Errorf("%s on %q: %s, %q; want %s, %q", machine, runtime, got, why, status, text)
		}
	}
	// the upper end is 10 % below, within the tolerance
	check("here", "cpu@1.31.1", 90, Passed, "reported 100.0 infer/s")
	check("here", "cpu@1.31.1", 89, Failed, "more than 10 % below")
	check("there", "cpu@1.31.1", 89, Skipped, "on another machine: not judged")
	check("here", "openvino@1.24.1", 89, Skipped, "on openvino@1.24.1, but this is cpu@1.31.1: not judged")
	check("here", "", 89, Skipped, "on a server's own ONNX Runtime, but this is cpu@1.31.1: not judged")
}

// The throughput of another server than the bundled engine is reported but not judged, even on the
// same machine and build.
func TestJudgeOtherServer(t *testing.T) {
	t.Parallel()
	v := verifier{options: Options{Fingerprint: "here"}}
	s := subject{build: Build{Name: "cpu@1.31.1"}, reported: export.ManifestModel{Server: "triton 2.51.0 (/opt/tritonserver)",
		Machine: "here", Runtime: "cpu@1.31.1", Load: measure.Load{Concurrency: 1, BatchSize: 1}, Throughput: export.Figure{Value: 100}}}
	const want = "reported 100.0 infer/s by triton 2.51.0 (/opt/tritonserver), but this is the bundled engine: not judged"
	if status, text := v.judge(s, measure.Estimate{Value: 50, Lo: 50, Hi: 50}); status != Skipped || !strings.HasSuffix(text, want) {
		t.Errorf("%s, %q; want %s, %q", status, text, Skipped, want)
	}
}

// A server has one ONNX Runtime, so models with another one need another server.
func TestByLibrary(t *testing.T) {
	t.Parallel()
	model := func(name, library string) subject {
		return subject{reported: export.ManifestModel{Name: name}, build: Build{Library: library}}
	}
	var got [][]string
	for _, group := range byLibrary([]subject{model("a", "x"), model("b", "y"), model("c", "x")}) {
		var names []string
		for _, s := range group {
			names = append(names, s.reported.Name)
		}
		got = append(got, names)
	}
	if diff := cmp.Diff([][]string{{"a", "c"}, {"b"}}, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// repository writes a repository with one model, and returns its folder.
func repository(t *testing.T, config string) string {
	t.Helper()
	c, err := modelconfig.Parse("config.pbtxt", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := modelrepo.Write(dir, modelrepo.Source{Path: "../../testdata/ort/add_sub.onnx", Digest: "d"}, c); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := repository(t, `name: "m" max_batch_size: 8 instance_group { count: 2 kind: KIND_CPU }`)
	s, err := open(dir, export.ManifestModel{Name: "m", Load: measure.Load{Concurrency: 1, BatchSize: 3}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.requests) != payload.Variety || len(s.requests[0].Inputs) != 2 || s.instances(4) != 2 {
		t.Fatalf("%d requests of %d inputs, %d instances", len(s.requests), len(s.requests[0].Inputs), s.instances(4))
	}
	if diff := cmp.Diff([]int64{3, 4}, s.requests[0].Inputs[0].Shape); diff != "" {
		t.Errorf("shape (-want +got):\n%s", diff)
	}
	if _, err := open(dir, export.ManifestModel{Name: "nosuch"}, ""); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("a model that is not there: %v", err)
	}
	if _, err := open(dir, export.ManifestModel{Name: "m", HostPolicies: []string{"$(reboot),cpu-cores=0"}}, ""); err == nil || !strings.Contains(err.Error(), "host_policies: cannot read") {
		t.Errorf("a host policy of another form: %v", err)
	}
}

// A server adds a preferred batch size to a batcher without one. Any other difference counts.
func TestServedConfiguration(t *testing.T) {
	t.Parallel()
	const rest = `name: "m" backend: "onnxruntime" default_model_filename: "model.onnx" max_batch_size: 8 instance_group { count: 2 kind: KIND_CPU } `
	for batcher, want := range map[string]bool{
		`dynamic_batching {}`:                                   true,
		`dynamic_batching { preferred_batch_size: [8] }`:        true,
		`dynamic_batching { preferred_batch_size: [4] }`:        false,
		`dynamic_batching { max_queue_delay_microseconds: 10 }`: false,
		``: false,
	} {
		file, errFile := modelconfig.Parse("config.pbtxt", []byte(rest+`dynamic_batching {}`))
		other, errOther := modelconfig.Parse("config.pbtxt", []byte(rest+batcher))
		served, errServed := modelconfig.Complete(other, modelconfig.CompleteOptions{DirName: "m", HasModelFile: true})
		if err := errors.Join(errFile, errOther, errServed); err != nil {
			t.Fatal(err)
		}
		s := subject{config: file, reported: export.ManifestModel{Name: "m"}}
		if got := s.isServedAs(served, 0); got != want {
			t.Errorf("%q: %v, want %v", batcher, got, want)
		}
	}
}

// Instances without a list of GPUs run on each GPU of the machine.
func TestInstances(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]int{
		`instance_group { count: 2 kind: KIND_GPU }`:           8,
		`instance_group { count: 2 kind: KIND_GPU gpus: [1] }`: 2,
		`instance_group { count: 2 kind: KIND_CPU }`:           2,
		``: 1,
	} {
		c, err := modelconfig.Parse("config.pbtxt", []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		if got := (subject{config: c}).instances(4); got != want {
			t.Errorf("%s: %d instances on 4 GPUs, want %d", config, got, want)
		}
	}
}

// A folder without an export is the user's mistake, and nothing is launched.
func TestNoExport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"no manifest":         "",
		"a model is missing":  `{"format": 1, "repository": "r", "models": [{"name": "m", "load": {"concurrency": 1, "batch_size": 1}, "throughput": {"value": 1}}]}`,
		"it leads elsewhere":  `{"format": 1, "repository": "../r", "models": [{"name": "m"}]}`,
		"it is not a listing": `[]`,
	} {
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, export.ManifestName), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Verify(t.Context(), dir, Options{})
		if exit.CodeOf(err) != exit.Usage {
			t.Errorf("%s: error %v, want one of the user's input", name, err)
		}
		_ = os.Remove(filepath.Join(dir, export.ManifestName)) // absent in the first case
	}
}
