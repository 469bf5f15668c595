package olive

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

// The texts of the blog's example (bertsquad).
func TestTensorsOfTheBlog(t *testing.T) {
	t.Parallel()
	in, out, err := Tensors{"input_names,input_mask,segment_ids", "[[-1,256],[-1,256],[-1,256]]", "int64,int64,int64", "start,end"}.Parse()
	if err != nil {
		t.Fatal(err)
	}
	want := []Input{
		{"input_names", "int64", []int64{-1, 256}}, {"input_mask", "int64", []int64{-1, 256}}, {"segment_ids", "int64", []int64{-1, 256}},
	}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Errorf("inputs differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"start", "end"}, out); diff != "" {
		t.Errorf("outputs differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]int64{"input_names": {256}, "input_mask": {256}, "segment_ids": {256}}, Settings{Inputs: in}.Shapes(true)); diff != "" {
		t.Errorf("shapes differ (-want +got):\n%s", diff)
	}
}

// A size instead of -1 is the batch and is kept, also 1.
func TestBatchSize(t *testing.T) {
	t.Parallel()
	for want, inputs := range map[int][]Input{
		0: {{"a", "", []int64{-1, 3}}, {"b", "", nil}}, 1: {{"a", "", []int64{-1, 3}}, {"b", "", []int64{1, 3}}},
		8: {{"a", "", []int64{8, 3}}, {"b", "", []int64{-1}}},
	} {
		if got, err := (Settings{Inputs: inputs}).BatchSize(); err != nil || got != want {
			t.Errorf("%v: %d, %v, want %d", inputs, got, err, want)
		}
	}
	for _, other := range []int64{1, 4} {
		s := Settings{Inputs: []Input{{"a", "", []int64{8}}, {"b", "", []int64{other}}}}
		if batch, err := s.BatchSize(); err == nil {
			t.Errorf("the batches 8 and %d are %d", other, batch)
		}
	}
}

// If the first dimension is not the batch, all sizes are those of a request. A model with a fixed
// batch of one is such a case.
func TestShapesOfAModelWithoutBatch(t *testing.T) {
	t.Parallel()
	for _, shape := range [][]int64{{1, 3, 28, 28}, {-1, 3, 28, 28}} {
		got := Settings{Inputs: []Input{{"image", "", shape}}}.Shapes(false)
		if diff := cmp.Diff(map[string][]int64{"image": {1, 3, 28, 28}}, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", shape, diff)
		}
	}
}

func TestTensorForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tensors Tensors
		want    []Input
	}{
		{Tensors{InNames: "x", InShapes: "[-1,3]"}, []Input{{"x", "", []int64{-1, 3}}}}, // a single input
		{Tensors{InNames: `["a", "b"]`, InTypes: ` float32 , int32`}, []Input{{"a", "float32", nil}, {"b", "int32", nil}}},
		{Tensors{}, nil},
	} {
		in, _, err := c.tensors.Parse()
		if diff := cmp.Diff(c.want, in); err != nil || diff != "" {
			t.Errorf("%+v: %v\n%s", c.tensors, err, diff)
		}
	}
}

func TestTensorMistakes(t *testing.T) {
	t.Parallel()
	for want, tensors := range map[string]Tensors{
		"2 names, but 1 shapes":                   {InNames: "a,b", InShapes: "[[1]]"},
		"2 names, but 3 types":                    {InNames: "a,b", InTypes: "int64,int64,int64"},
		"need the inputs' names":                  {InShapes: "[[1]]"},
		`"[[1" is not a list of shapes`:           {InNames: "a", InShapes: "[[1"},
		"only the first dimension, the batch":     {InNames: "a", InShapes: "[[1,-1]]"},
		"0 is not a size":                         {InNames: "a", InShapes: "[[0]]"},
		`"a" is named twice`:                      {InNames: "a,a"},
		"is empty":                                {InNames: "a,,b"},
		"neither names separated by commas nor a": {InNames: "[1]"},
	} {
		if _, _, err := tensors.Parse(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error is %v, want %q", tensors, err, want)
		}
	}
}

func TestCheckComparesWithTheModel(t *testing.T) {
	t.Parallel()
	model := build.Simple() // INPUT0, INPUT1: INT32[-1,16]; OUTPUT0, OUTPUT1
	ok := Settings{Inputs: []Input{{"INPUT0", "int32", []int64{-1, 16}}}, Outputs: []string{"OUTPUT0"}}
	if err := ok.Check(model); err != nil {
		t.Error(err)
	}
	bad := Settings{Inputs: []Input{{"INPUT0", "int64", []int64{-1, 8}}, {"ids", "", nil}}, Outputs: []string{"logits"}}
	err := bad.Check(model)
	for _, want := range []string{`type "int64" for input "INPUT0": the model says INT32`, "shape [-1 8] for input INPUT0", `cannot find input "ids"`, `cannot find output "logits"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

func TestElementTypes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]onnx.DataType{"int64": onnx.Int64, "float32": onnx.Float, "float": onnx.Float, "tensor(float16)": onnx.Float16,
		"torch.long": onnx.Int64, "np.bool_": onnx.Bool, "FLOAT": onnx.Float, "str": onnx.String} {
		if got, ok := elementType(name); !ok || got != want {
			t.Errorf("%q is %v, %t, want %v", name, got, ok, want)
		}
	}
	if got, ok := elementType("complex64"); ok {
		t.Errorf("complex64 is %v", got)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	s, err := ParseConfig("olive.json", []byte(`{
		"model_path": "bert.onnx", "result_path": "out", "input_names": ["ids"], "input_shapes": [[-1, 256]], "output_names": "start,end",
		"providers_list": ["cpu", "CUDAExecutionProvider"], "intra_thread_num_list": [1, 2, 2], "inter_thread_num_list": "1,4",
		"execution_mode_list": ["sequential", 1], "ort_opt_level_list": ["disable", "extended", 99], "quantization_enabled": true,
		"throughput_tuning_enabled": true, "dynamic_batching_size": 8, "concurrency_num": 2, "warmup_num": 10, "openmp_enabled": false,
		"kmp_affinity": null
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Model: "bert.onnx", Output: "out", Inputs: []Input{{"ids", "", []int64{-1, 256}}}, Outputs: []string{"start", "end"},
		Throughput: true, Batch: 8, Sessions: 2,
		Knobs: []Knob{
			{"execution_mode", []string{"sequential", "parallel"}}, {"inter_op_threads", []string{"1", "4"}}, {"intra_op_threads", []string{"1", "2"}},
			{"graph_optimization", []string{"disable", "extended", "all"}}, {"precision", []string{"fp32", "int8"}},
			{"execution_provider", []string{"cpu", "cuda"}},
		},
		Notes: []string{"warmup_num: does not apply: every window begins when the figures are steady"},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

// Relative paths are relative to the file, as in every file. An empty path stays empty.
func TestPathsAreRelativeToTheConfig(t *testing.T) {
	t.Parallel()
	s, err := ParseConfig("work/olive.json", []byte(`{"model_path": "../bert.onnx", "result_path": "/tmp/out"}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Settings{Model: "bert.onnx", Output: "/tmp/out"}, s); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	if s, err = ParseConfig("work/olive.json", []byte(`{"model_path": "m.onnx", "sample_input_data_path": "d.npz"}`)); err != nil || s.Data != "work/d.npz" {
		t.Errorf("data is %q, %v", s.Data, err)
	}
}

func TestConfigNotesWhatCannotApply(t *testing.T) {
	t.Parallel()
	s, err := ParseConfig("olive.json", []byte(`{"model_path": "m.onnx", "openmp_enabled": true, "max_latency_ms": 30, "use_conda": true,
		"onnxruntime_version": "1.11", "transformer_enabled": true, "concurrency_num": 4, "dynamic_batching_size": 8, "trt_fp16_enabled": true}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"openmp_enabled", "max_latency_ms", "use_conda", "onnxruntime_version", "transformer_enabled", "concurrency_num",
		"dynamic_batching_size", "trt_fp16_enabled"} {
		if !strings.Contains(strings.Join(s.Notes, "\n"), field+": does not apply") {
			t.Errorf("%s is ignored silently; the notes are %q", field, s.Notes)
		}
	}
}

func TestConfigMistakesAreListed(t *testing.T) {
	t.Parallel()
	_, err := ParseConfig("olive.json", []byte(`{"provider_list": ["cpu"], "providers_list": ["tpu"], "intra_thread_num_list": ["many"],
		"execution_mode_list": ["fast"], "concurrency_num": 0, "quantization_enabled": "yes", "inputs_spec": {"x": [1]}, "input_names": ["x"]}`))
	for _, want := range []string{
		`provider_list: is not a known key of OLive's configuration; did you mean "providers_list"?`, `"tpu" is not an execution provider`,
		`"many" is not a number of threads`, `"fast" is not known`, "concurrency_num: must be a whole number from 1",
		"quantization_enabled: must be true or false", "inputs_spec: contradicts input_names", "model_path: is required",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	variables := map[string]string{"model_location": "https://host/models", "model_filename": "bert.onnx", "model_name": "bertsquad", "model_type": "pytorch",
		"in_names": "ids,mask", "in_shapes": "[[-1,256],[-1,256]]", "in_types": "int64,int64", "out_names": "start", "OMP_NUM_THREADS": "4"}
	lookup := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	s, found, err := Variables(lookup)
	if err != nil || !found || s.Model != "bert.onnx" || s.Name != "bertsquad" || len(s.Inputs) != 2 || len(s.Notes) != 3 {
		t.Errorf("found %t, %+v, %v", found, s, err)
	}
	variables["model_location"] = "models"
	if s, _, _ = Variables(lookup); s.Model != "models/bert.onnx" {
		t.Errorf("model is %q", s.Model)
	}
	if _, found, _ := Variables(func(string) (string, bool) { return "", false }); found {
		t.Error("no variables name a model")
	}
}

func FuzzConfig(f *testing.F) {
	for _, seed := range []string{`{}`, `[]`, `{"model_path":"m","inputs_spec":{"a":[1,7]},"providers_list":"cpu,cuda"}`, `{"model_path":"m"} x`,
		`{"input_shapes":"[[1]]","input_names":"a","ort_opt_level_list":[null,1e99,{}]}`, `{"model_path":1,"intra_thread_num_list":[[1]]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		s, err := ParseConfig("olive.json", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "olive.json: ") {
				t.Fatalf("error does not name the file: %v", err)
			}
			return
		}
		if s.Model == "" {
			t.Fatal("settings without a model")
		}
		for _, k := range s.Knobs {
			if len(k.Values) == 0 {
				t.Fatalf("knob %s has no values", k.Name)
			}
		}
		s.Shapes(true)
	})
}

func FuzzTensors(f *testing.F) {
	f.Add("a,b", "[[-1,2],[-1,2]]", "int64,int64", "c")
	f.Add(`["a"]`, "[1]", "", "")
	f.Add("", "[[", ",", "[]")
	f.Fuzz(func(t *testing.T, names, shapes, types, outs string) {
		in, _, err := Tensors{names, shapes, types, outs}.Parse()
		if err != nil {
			return
		}
		for _, i := range in {
			if i.Name == "" {
				t.Fatal("an input without a name")
			}
			for k, d := range i.Shape {
				if d < 1 && (k > 0 || d != -1) {
					t.Fatalf("shape %v", i.Shape)
				}
			}
		}
	})
}
