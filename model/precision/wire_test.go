package precision

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/api"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// Tensors of every type survive sending and receiving.
func TestWire(t *testing.T) {
	t.Parallel()
	in := map[string]inputs.Tensor{"text": {Type: onnx.String, Shape: []int64{2, 1}, Strings: [][]byte{[]byte("one"), {}}}}
	for _, elementType := range onnx.ServableTypes() {
		if size := elementType.Size(); size > 0 {
			in[elementType.String()] = inputs.Tensor{Type: elementType, Shape: []int64{1, 2}, Data: []byte(strings.Repeat("x", int(2*size)))}
		}
	}
	r := request(in)
	if len(r.Inputs) != len(in) || r.Inputs[len(r.Inputs)-1].Name != "text" {
		t.Errorf("%d inputs, the last is %q", len(r.Inputs), r.Inputs[len(r.Inputs)-1].Name)
	}
	out, err := answer(r.Inputs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnswerErrors(t *testing.T) {
	t.Parallel()
	for want, tensor := range map[string]api.Tensor{
		`cannot read the output "y": `:      {Name: "y", Datatype: "FP31", Shape: []int64{1}},
		"does not fit the 3 bytes":          {Datatype: "FP32", Shape: []int64{1}, Data: []byte{1, 2, 3}},
		"INT64[-1] does not fit":            {Datatype: "INT64", Shape: []int64{-1}},
		"2 bytes are left where the length": {Datatype: "BYTES", Shape: []int64{1}, Data: []byte{1, 0}},
		"a string has 9 bytes":              {Datatype: "BYTES", Shape: []int64{1}, Data: []byte{9, 0, 0, 0, 1}},
		"does not fit the 1 bytes":          {Datatype: "BYTES", Shape: []int64{2}, Data: []byte{1, 0, 0, 0, 1}},
	} {
		if _, err := answer([]api.Tensor{tensor}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

// An answer that can be read can be sent again as the same bytes.
func FuzzAnswer(f *testing.F) {
	f.Add("FP32", int64(1), int64(2), []byte("12345678"))
	f.Add("BYTES", int64(1), int64(1), []byte{3, 0, 0, 0, 'o', 'n', 'e'})
	f.Add("BYTES", int64(0), int64(9), []byte{})
	f.Add("INT8", int64(-1), int64(1)<<62, []byte{})
	f.Fuzz(func(t *testing.T, datatype string, a, b int64, data []byte) {
		out, err := answer([]api.Tensor{{Name: "y", Datatype: datatype, Shape: []int64{a, b}, Data: data}})
		if err != nil {
			return
		}
		again := request(out).Inputs[0]
		if again.Datatype != datatype || string(again.Data) != string(data) {
			t.Errorf("%s %q became %s %q", datatype, data, again.Datatype, again.Data)
		}
	})
}
