package modelconfig

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"tuner/model/modelconfig/configpb"
)

func tensor(name string, t configpb.DataType, dims ...int64) Tensor {
	return Tensor{Name: name, DataType: t, Dims: dims}
}

const (
	fp32 = configpb.DataType_TYPE_FP32
	i64  = configpb.DataType_TYPE_INT64
)

// addSub has a batch dimension. fixed has only fixed dimensions.
var (
	addSub = ModelIO{
		Inputs:  []Tensor{tensor("x", fp32, -1, 4), tensor("y", fp32, -1, 4)},
		Outputs: []Tensor{tensor("sum", fp32, -1, 4), tensor("diff", fp32, -1, 4)},
	}
	fixed = ModelIO{
		Inputs:  []Tensor{tensor("x", fp32, 1, 4)},
		Outputs: []Tensor{tensor("sum", fp32, 1, 4)},
	}
)

// pinned and latest are the texts that normalisation adds to every model.
const pinned = `
	version_policy { latest { num_versions: 1 } }
	optimization { input_pinned_memory { enable: true } output_pinned_memory { enable: true } }`

// named is the text that the server fills in.
const named = `name: "m" platform: "onnxruntime_onnx" backend: "onnxruntime" default_model_filename: "model.onnx"`

// ensembleNamed is an ensemble with all that the server fills in.
const ensembleNamed = `name: "m" platform: "ensemble" ensemble_scheduling {} version_policy { latest { num_versions: 1 } } `

const addSubIO = `
	input { name: "x" data_type: TYPE_FP32 dims: 4 } input { name: "y" data_type: TYPE_FP32 dims: 4 }
	output { name: "sum" data_type: TYPE_FP32 dims: 4 } output { name: "diff" data_type: TYPE_FP32 dims: 4 }`

// defaultGroup is the default group, on CPUs.
const defaultGroup = `instance_group { name: "m" kind: KIND_CPU count: 2 }`

func TestComplete(t *testing.T) {
	t.Parallel()
	withModel := func(io ModelIO) CompleteOptions {
		return CompleteOptions{DirName: "m", HasModelFile: true, IO: &io}
	}
	batching := func(size string) string {
		return "max_batch_size: " + size + " dynamic_batching { preferred_batch_size: " + size + " }"
	}
	tests := []struct {
		name, in string
		options  CompleteOptions
		want     string
	}{
		{"nothing but the file", ``, withModel(addSub), named + pinned + defaultGroup + addSubIO + batching("4")},
		{"platform alone", `platform: "onnxruntime_onnx"`, withModel(addSub), named + pinned + defaultGroup + addSubIO + batching("4")},
		{"max_batch_size alone", `max_batch_size: 16`, withModel(addSub), named + pinned + defaultGroup + addSubIO + batching("16")},
		{
			"max_batch_size 1 gets no batcher", `max_batch_size: 1`, withModel(addSub),
			named + pinned + defaultGroup + addSubIO + `max_batch_size: 1`,
		},
		{
			"another default", ``, CompleteOptions{DirName: "m", HasModelFile: true, IO: &addSub, DefaultMaxBatchSize: 8},
			named + pinned + defaultGroup + addSubIO + batching("8"),
		},
		{
			"both sides given: no batching", addSubIO, withModel(addSub),
			named + pinned + defaultGroup + addSubIO,
		},
		{
			"inputs only", `input { name: "y" data_type: TYPE_FP32 dims: 4 } input { name: "x" data_type: TYPE_FP32 dims: 4 }`, withModel(addSub),
			named + pinned + defaultGroup + batching("4") + `
			input { name: "y" data_type: TYPE_FP32 dims: 4 } input { name: "x" data_type: TYPE_FP32 dims: 4 }
			output { name: "sum" data_type: TYPE_FP32 dims: 4 } output { name: "diff" data_type: TYPE_FP32 dims: 4 }`,
		},
		{
			"a batcher of the user's", `dynamic_batching { max_queue_delay_microseconds: 7 }`, withModel(addSub),
			named + pinned + defaultGroup + addSubIO +
				`max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 7 preferred_batch_size: 4 }`,
		},
		{
			"model without batch dimension", ``, withModel(fixed),
			named + pinned + defaultGroup + `
			input { name: "x" data_type: TYPE_FP32 dims: [1, 4] } output { name: "sum" data_type: TYPE_FP32 dims: [1, 4] }`,
		},
		{
			"rank 1 when batching", ``, withModel(ModelIO{Inputs: []Tensor{tensor("x", i64, -1)}, Outputs: []Tensor{tensor("y", fp32, -1, -1)}}),
			named + pinned + defaultGroup + batching("4") + `
			input { name: "x" data_type: TYPE_INT64 dims: 1 reshape {} } output { name: "y" data_type: TYPE_FP32 dims: -1 }`,
		},
		{
			"a scalar forbids batching", ``, withModel(ModelIO{Inputs: []Tensor{tensor("x", i64), tensor("y", i64, -1, 2)}, Outputs: []Tensor{tensor("z", fp32, -1)}}),
			named + pinned + defaultGroup + `
			input { name: "x" data_type: TYPE_INT64 dims: 1 } input { name: "y" data_type: TYPE_INT64 dims: [-1, 2] }
			output { name: "z" data_type: TYPE_FP32 dims: -1 }`,
		},
		{
			"the flag", addSubIO + named, CompleteOptions{DirName: "m", IO: &addSub, DisableAutoComplete: true},
			named + pinned + defaultGroup + addSubIO,
		},
		{"without the model", `max_batch_size: 4 dynamic_batching {}`, CompleteOptions{DirName: "m", HasModelFile: true}, named + pinned + defaultGroup + batching("4")},
		{
			"groups without names or counts", `instance_group { count: 1 } instance_group { kind: KIND_CPU name: "b" } instance_group { kind: KIND_MODEL }`,
			CompleteOptions{DirName: "m", HasModelFile: true},
			named + pinned + `instance_group { name: "m_0" kind: KIND_CPU count: 1 } instance_group { name: "b" kind: KIND_CPU count: 2 } instance_group { name: "m_2" kind: KIND_MODEL count: 1 }`,
		},
		{
			"GPUs", `instance_group {} instance_group { gpus: 1 } instance_group { kind: KIND_CPU }`,
			CompleteOptions{DirName: "m", HasModelFile: true, GPUs: 2},
			named + pinned + `instance_group { name: "m_0" kind: KIND_GPU count: 1 gpus: [0, 1] } instance_group { name: "m_1" kind: KIND_GPU count: 1 gpus: 1 } instance_group { name: "m_2" kind: KIND_CPU count: 2 }`,
		},
		{
			"another file name", `platform: "onnxruntime_onnx" default_model_filename: "net.onnx"`, CompleteOptions{DirName: "m"},
			`name: "m" platform: "onnxruntime_onnx" backend: "onnxruntime" default_model_filename: "net.onnx"` + pinned + defaultGroup,
		},
		{
			"a sequence gets its defaults", `sequence_batching { oldest {} } max_batch_size: 2`, withModel(addSub),
			named + pinned + defaultGroup + addSubIO + `max_batch_size: 2 sequence_batching { max_sequence_idle_microseconds: 1000000 oldest { preferred_batch_size: 2 } }`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			in := mustParse(t, []byte(test.in))
			got, err := Complete(in, test.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(mustParse(t, []byte(test.want)), got, protocmp.Transform()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !Equal(in, mustParse(t, []byte(test.in))) {
				t.Error("the argument was changed")
			}
			again, err := Complete(got, test.options)
			if err != nil || !Equal(got, again) {
				t.Errorf("not idempotent: %v, %v", again, err)
			}
		})
	}
}

// These are the messages of a real Triton. polled are those that it only logs.
func TestCompleteErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		options  CompleteOptions
		polled   bool
		want     string
	}{
		{"nothing to go by", ``, CompleteOptions{DirName: "m"}, true, "Invalid model name: Could not determine backend for model 'm' with no backend in model configuration. Expected model name of the form 'model.<backend_name>'."},
		{"name", `name: "other"`, CompleteOptions{DirName: "m", HasModelFile: true}, true, "unexpected directory name 'm' for model 'other', directory name must equal model name"},
		{"platform", `platform: "onnx"`, CompleteOptions{DirName: "m", HasModelFile: true}, true, "unexpected platform type 'onnx' for m"},
		{"pair", `platform: "onnx" backend: "onnxruntime"`, CompleteOptions{DirName: "m"}, true, "unexpected 'platform' and 'backend' pair, got:onnx, onnxruntime"},
		{"negative batch", `max_batch_size: -1`, CompleteOptions{DirName: "m", HasModelFile: true}, true, "'max_batch_size' must be non-negative value for m"},
		{"preferred", `max_batch_size: 8 dynamic_batching { preferred_batch_size: 16 }`, CompleteOptions{DirName: "m", HasModelFile: true}, true, "dynamic batching preferred size must be <= max batch size for m"},
		{"no batch dimension", `max_batch_size: 8`, CompleteOptions{DirName: "m", HasModelFile: true, IO: &fixed}, false, "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified"},
		{"no GPU", `instance_group { kind: KIND_GPU }`, CompleteOptions{DirName: "m", HasModelFile: true}, false, "instance group m_0 of model m has kind KIND_GPU but no GPUs are available"},
		{"GPU id", `instance_group { kind: KIND_GPU gpus: 2 }`, CompleteOptions{DirName: "m", HasModelFile: true, GPUs: 2}, false, "instance group m_0 of model m specifies invalid or unsupported gpu id 2. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are: 0, 1"},
		{"GPU id without GPUs", `instance_group { kind: KIND_GPU gpus: 0 }`, CompleteOptions{DirName: "m", HasModelFile: true}, false, "instance group m_0 of model m specifies invalid or unsupported gpu id 0. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are: "},
		{"GPU id below 0", `instance_group { kind: KIND_GPU gpus: -1 }`, CompleteOptions{DirName: "m", HasModelFile: true, GPUs: 1}, false, "instance group m_0 of model m specifies invalid or unsupported gpu id -1. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are: 0"},
		{"another backend", `backend: "python"`, CompleteOptions{DirName: "m", HasModelFile: true}, false, "unable to find backend library for backend 'python', try specifying runtime on the model configuration."},
		{"another platform", `platform: "tensorflow_graphdef"`, CompleteOptions{DirName: "m", HasModelFile: true}, false, "unable to find backend library for backend 'tensorflow', try specifying runtime on the model configuration."},
		{"another library", `runtime: "libtriton_pytorch.so"`, CompleteOptions{DirName: "m", HasModelFile: true}, false, "unable to find backend library 'libtriton_pytorch.so' for model 'm', searched: the backends of this program"},
		{"a library elsewhere", `runtime: "../lib/libtriton_onnxruntime.so"`, CompleteOptions{DirName: "m", HasModelFile: true}, false, "backend library name '../lib/libtriton_onnxruntime.so' escapes backend directory 'onnxruntime', for model 'm', check model config runtime field"},
		{"ensemble with a cache", `platform: "ensemble" ensemble_scheduling {} response_cache { enable: true } model_transaction_policy { decoupled: true }`, CompleteOptions{DirName: "m"}, true, "Response Cache does not currently support model m with 'decoupled' transaction policy. Please disable the response cache."},
		{"too many instances", `instance_group { count: 2000000000 }`, CompleteOptions{DirName: "m", HasModelFile: true}, false, "instance group m_0 of model m has count 2000000000; this engine makes 1024 instances at most"},
		{"too many in groups", strings.Repeat(`instance_group { count: 1024 } `, 9), CompleteOptions{DirName: "m", HasModelFile: true}, false, "the instance groups of model m have 9216 instances; this engine makes 8192 at most for a model"},
		{"too many priorities", `dynamic_batching { priority_levels: 18446744073709551615 default_priority_level: 1 }`, CompleteOptions{DirName: "m", HasModelFile: true}, true, "dynamic batching has 18446744073709551615 priority levels for m; this engine has 65536 at most"},
		{"backend by name", ``, CompleteOptions{DirName: "m.tensorflow"}, false, "unable to find backend library for backend 'tensorflow', try specifying runtime on the model configuration."},
		{"tensors while polling", `input { name: "x" dims: 1 }`, CompleteOptions{DirName: "m", HasModelFile: true, DisableAutoComplete: true}, true, "model input 'x' must specify 'data_type' for m"},
		{"tensors later", `input { name: "x" dims: 1 }`, CompleteOptions{DirName: "m", HasModelFile: true}, false, "model input 'x' must specify 'data_type' for m"},
		{"two at once", `max_batch_size: -1 platform: "onnx"`, CompleteOptions{DirName: "m"}, true, "unexpected platform type 'onnx' for m\n'max_batch_size' must be non-negative value for m"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := Complete(mustParse(t, []byte(test.in)), test.options)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if polled := errors.As(err, new(*PollError)); polled != test.polled {
				t.Errorf("is a PollError: %v, want %v", polled, test.polled)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	const base = named + pinned + defaultGroup
	tests := []struct{ name, in, want string }{
		{"complete", base + addSubIO, ""},
		{"nothing", ``, "model configuration must specify 'name'\nunexpected platform type '' for \nmust specify 'version policy' for \nmust specify one or more 'instance group's for "},
		{"preferred zero", base + `max_batch_size: 4 dynamic_batching { preferred_batch_size: 0 }`, "dynamic batching preferred size must be positive for m"},
		{"default priority", base + `dynamic_batching { priority_levels: 2 }`, "default priority level must be in range [1, 2] for m"},
		{"priority policy", base + `dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value {} } }`, "priority queue policy must have priority level in range [1, 2] for m"},
		{"order and priorities", base + `dynamic_batching { priority_levels: 2 default_priority_level: 1 preserve_ordering: true }`, "Only one priority level is allowed when 'preserve_ordering' is true for m"},
		{"order and delay", base + `dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 } }`, "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m"},
		{"cache and decoupled", base + `response_cache { enable: true } model_transaction_policy { decoupled: true }`, "Response Cache does not currently support model m with 'decoupled' transaction policy. Please disable the response cache."},
		{"CPU with GPUs", named + pinned + `instance_group { name: "g" kind: KIND_CPU gpus: 0 count: 1 }`, "instance group g of model m has kind KIND_CPU but specifies one or more GPUs"},
		{"profile", named + pinned + `instance_group { name: "g" kind: KIND_CPU count: 1 profile: "0" }`, "instance group g of model m and platform onnxruntime_onnxspecifies profile field which is only supported for TensorRT models"},
		{"kind not resolved", named + pinned + `instance_group { name: "g" count: 1 }`, "instance group g of model m has unexpected kind KIND_AUTO"},
		{"ensemble with a backend", ensembleNamed + `backend: "onnxruntime"`, "Ensemble model 'm' must have platform type 'ensemble' and empty backend type"},
		{"ensemble with groups", ensembleNamed + defaultGroup, "instance group should not be specified for ensemble 'm'"},
		{"ensemble with optimization", ensembleNamed + `optimization {}`, "optimization should not be specified for ensemble 'm'"},
		{"ensemble with a warm-up", ensembleNamed + `model_warmup {}`, "model_warmup can not be specified for ensemble 'm'"},
		{"no dims", base + `input { name: "x" data_type: TYPE_FP32 }`, "model input 'x' must specify 'dims' for m"},
		{"no name", base + `output { data_type: TYPE_FP32 dims: 1 }`, "model output must specify 'name' for m"},
		{"twice", base + `input { name: "x" data_type: TYPE_FP32 dims: 1 } input { name: "x" data_type: TYPE_FP32 dims: 1 }`, "model input 'x' is specified twice for m"},
		{"dimension 0", base + `input { name: "x" data_type: TYPE_FP32 dims: 0 }`, "model input 'x' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m"},
		{"NHWC", base + `input { name: "x" data_type: TYPE_FP32 dims: [1, 2] format: FORMAT_NHWC }`, "model input NHWC/NCHW require 3 dims for m"},
		{"shape tensor", base + `input { name: "x" data_type: TYPE_INT64 dims: 1 is_shape_tensor: true }`, "shape tensors are only supported for TensorRT platform for m"},
		{"empty reshape", base + `input { name: "x" data_type: TYPE_INT64 dims: 1 reshape {} }`, "model input 'x' cannot have empty reshape for non-batching model as scalar tensors are not supported for m"},
		{"empty reshape of more", base + `max_batch_size: 1 input { name: "x" data_type: TYPE_INT64 dims: 2 reshape {} }`, "model input 'x' has different size for dims and reshape for m"},
		{"empty reshape, batching", base + `max_batch_size: 1 input { name: "x" data_type: TYPE_INT64 dims: 1 reshape {} }`, ""},
		{"reshape", base + `input { name: "x" data_type: TYPE_INT64 dims: [2, 4, -1, 6] reshape { shape: [8, -1, 1, 6] } }`, ""},
		{"reshape moves a variable", base + `input { name: "x" data_type: TYPE_INT64 dims: [2, -1] reshape { shape: [-1, 2] } }`, "model input 'x' has different size for dims and reshape for m"},
		{"reshape loses a variable", base + `input { name: "x" data_type: TYPE_INT64 dims: [-1, -1] reshape { shape: [-1] } }`, "model input 'x' has different number of variable-size dimensions for dims and reshape for m"},
		{"reshape overflows", base + `input { name: "x" data_type: TYPE_INT64 dims: [9223372036854775807, 2] reshape { shape: [9223372036854775807, 2] } }`, "model input 'x' has different size for dims and reshape for m"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := Validate(mustParse(t, []byte(test.in))); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
