package modelconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/modelconfig/configpb"
)

// The errors are those of Triton's model_config_utils.
func TestSequenceControls(t *testing.T) {
	t.Parallel()
	input := func(name, control string) string {
		return `control_input { name: "` + name + `" control { kind: CONTROL_SEQUENCE_` + control + ` } } `
	}
	for _, tc := range []struct{ in, want string }{
		{input("s", "START int32_false_true: [ 0, 1 ]") + input("i", "CORRID data_type: TYPE_UINT64"), ""},
		{input("", "START int32_false_true: [ 0, 1 ]"), "sequence batching control tensor must have a name for m"},
		{input("s", "START int32_false_true: [ 0, 1 ]") + input("s", "END int32_false_true: [ 0, 1 ]"), "sequence batching control tensor 's' is specified for multiple control kinds for m"},
		{input("s", "START int32_false_true: [ 0, 1 ]") + input("t", "START int32_false_true: [ 0, 1 ]"), "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for m"},
		{input("s", "READY"), "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_READY for m"},
		{input("s", "END int32_false_true: [ 0, 1 ] fp32_false_true: [ 0, 1 ]"), "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for CONTROL_SEQUENCE_END for m"},
		{input("s", "END int32_false_true: [ 0 ]"), "sequence batching control 'int32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_END for m"},
		{input("s", "END fp32_false_true: [ 0, 1, 2 ]"), "sequence batching control 'fp32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_END for m"},
		{input("s", "END bool_false_true: [ true ]"), "sequence batching control 'bool_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_END for m"},
		{input("s", "CORRID int32_false_true: [ 0, 1 ]"), "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_CORRID for m"},
		{input("s", "CORRID data_type: TYPE_FP32"), "unexpected data type for control CONTROL_SEQUENCE_CORRID for m. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"},
	} {
		got := ""
		if _, err := SequenceControls(mustParse(t, []byte(`name: "m" sequence_batching { `+tc.in+` }`))); err != nil {
			got = err.Error()
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.in, d)
		}
	}
}

func TestCheckModelOfSequences(t *testing.T) {
	t.Parallel()
	tensor := func(name string, t configpb.DataType, dims ...int64) Tensor { return Tensor{name, t, dims} }
	io := ModelIO{
		Inputs: []Tensor{
			tensor("x", configpb.DataType_TYPE_FP32, -1, 4), tensor("s", configpb.DataType_TYPE_INT32, -1, 1),
			tensor("old", configpb.DataType_TYPE_FP32, -1, 3),
		},
		Outputs: []Tensor{tensor("y", configpb.DataType_TYPE_FP32, -1, 4), tensor("new", configpb.DataType_TYPE_FP32, -1, 3)},
	}
	const tensors = `name: "m" max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 } `
	const control = `control_input { name: "s" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } `
	const state = `state { input_name: "old" output_name: "new" data_type: TYPE_FP32 dims: 3 } `
	for _, tc := range []struct{ in, want string }{
		{control + state, ""},
		{state, "unable to load model 'm', configuration expects 2 inputs, model provides 3"},
		{`control_input { name: "z" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } ` + state, "configuration specified sequence control 'z', but model does not provide that input"},
		{`control_input { name: "s" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } } ` + state,
			"unable to load model 'm', sequence control 's', the model expects data-type INT32 but the model configuration specifies data-type TYPE_FP32"},
		{`control_input { name: "old" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } } ` + state,
			"unable to load model 'm', sequence control 'old' in model has dims [3] but dims [1] is expected"},
		{control + `state { input_name: "old" output_name: "z" data_type: TYPE_FP32 dims: 3 }`, "unexpected output state 'z' for model 'm', which has no such output"},
		{control + `state { input_name: "old" output_name: "new" data_type: TYPE_INT32 dims: 3 }`, "unable to load model 'm', configuration expects datatype TYPE_INT32 for input state 'old', model provides TYPE_FP32"},
	} {
		got := ""
		if err := CheckModel(mustParse(t, []byte(tensors+`sequence_batching { `+tc.in+` }`)), io); err != nil {
			got = err.Error()
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.in, d)
		}
	}
}
