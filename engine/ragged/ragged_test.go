package ragged

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tuner/engine/request"
	"tuner/engine/session"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

const model = `name: "m" backend: "onnxruntime" max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: [ -1, -1 ] allow_ragged_batch: true }
input { name: "same" data_type: TYPE_FP32 dims: [ 2 ] }
output { name: "y" data_type: TYPE_INT32 dims: [ -1, 2 ] }
output { name: "z" data_type: TYPE_INT32 dims: [ 1 ] }
`

func parse(t *testing.T, text string) *modelconfig.Config {
	t.Helper()
	c, err := modelconfig.Parse("config.pbtxt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// two requests: one row of 3 × 2 elements, and two rows of 1 × 4.
func two(k int, input string) []int64 {
	if input == "same" {
		return [][]int64{{1, 2}, {2, 2}}[k]
	}
	return [][]int64{{1, 3, 2}, {2, 1, 4}}[k]
}

func numbers(in session.BatchInput) []int64 {
	var out []int64
	for data := in.Parts[0]; len(data) > 0; data = data[4:] {
		bits := binary.LittleEndian.Uint32(data)
		if in.DataType == configpb.DataType_TYPE_FP32 {
			out = append(out, int64(math.Float32frombits(bits)))
		} else {
			out = append(out, int64(int32(bits)))
		}
	}
	return out
}

// The values and shapes are those that model_config.proto gives for each kind: the first request has
// 6 elements, the second 8.
func TestJoin(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]struct{ shape, values []int64 }{
		"BATCH_ELEMENT_COUNT":                       {[]int64{2}, []int64{6, 8}},
		"BATCH_ACCUMULATED_ELEMENT_COUNT":           {[]int64{2}, []int64{6, 14}},
		"BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO": {[]int64{3}, []int64{0, 6, 14}},
		"BATCH_MAX_ELEMENT_COUNT_AS_SHAPE":          {[]int64{8}, make([]int64, 8)},
		"BATCH_ITEM_SHAPE":                          {[]int64{3, 2}, []int64{3, 2, 1, 4, 1, 4}},
		"BATCH_ITEM_SHAPE_FLATTEN":                  {[]int64{6}, []int64{3, 2, 1, 4, 1, 4}},
	} {
		for _, dataType := range []string{"TYPE_INT32", "TYPE_FP32"} {
			s, err := New(parse(t, model+fmt.Sprintf(`batch_input { kind: %s target_name: "n" data_type: %s source_input: "x" }`, kind, dataType)))
			if err != nil {
				t.Fatal(err)
			}
			b := &session.Batch{Inputs: []session.BatchInput{{Name: "x", Shape: []int64{3, 3, 2}}, {Name: "same", Shape: []int64{3, 2}}}}
			s.Join(b, 2, two)
			if !slices.Equal(b.Inputs[0].Shape, []int64{14}) || !slices.Equal(b.Inputs[1].Shape, []int64{3, 2}) {
				t.Errorf("shapes are %v and %v, want 14 and 3, 2", b.Inputs[0].Shape, b.Inputs[1].Shape)
			}
			if in := b.Inputs[2]; in.Name != "n" || !slices.Equal(in.Shape, want.shape) || !slices.Equal(numbers(in), want.values) {
				t.Errorf("%s as %s: %v of shape %v, want %v of shape %v", kind, dataType, numbers(in), in.Shape, want.values, want.shape)
			}
			// 12 bytes for each value, of which a zero in front does not count
			if got, n := s.Bytes(2, two), len(want.values); got != 12*n && got != 12*(n-1) {
				t.Errorf("%s: got %d bytes for %d values", kind, got, n)
			}
		}
	}
}

// An output [-1, -1, 2] takes its open dimensions from the input: 1 × 3 × 2 and 2 × 1 × 2 elements.
func TestParts(t *testing.T) {
	t.Parallel()
	s, err := New(parse(t, model+`batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "y" source_input: "x" }`))
	if err != nil {
		t.Fatal(err)
	}
	if !s.Scatters("y") || s.Scatters("z") {
		t.Error("output y alone is scattered")
	}
	whole := &request.Tensor{Name: "y", DataType: configpb.DataType_TYPE_INT32, Shape: []int64{10}, Data: make([]byte, 40)}
	for i := range whole.Data {
		whole.Data[i] = byte(i)
	}
	parts, err := s.Parts(whole, 2, two)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(parts[0].Shape, []int64{1, 3, 2}) || !slices.Equal(parts[1].Shape, []int64{2, 1, 2}) ||
		!slices.Equal(slices.Concat(parts[0].Data, parts[1].Data), whole.Data) {
		t.Errorf("parts are %v", parts)
	}
	whole.Data = whole.Data[:39]
	if _, err := s.Parts(whole, 2, two); err == nil {
		t.Error("an output that is too small was divided")
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	if s, err := New(parse(t, strings.Replace(model, " allow_ragged_batch: true", "", 1))); s != nil || err != nil {
		t.Errorf("%v, %v for a model without anything of this, want nil", s, err)
	}
	if _, err := New(parse(t, model+`batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "y" source_input: "same" }`)); err != nil {
		t.Errorf("dimensions 0 and 1 of the source are there: %v", err)
	}
	if _, err := New(parse(t, strings.Replace(model, "dims: [ -1, 2 ]", "dims: [ 1, -1 ]", 1)+
		`batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "y" source_input: "same" }`)); err == nil {
		t.Error("an open dimension that the source does not have was accepted")
	}
}
