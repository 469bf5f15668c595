package classification_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/budget"
	"tuner/engine/classification"
	"tuner/engine/request"
	"tuner/model/modelconfig/configpb"
)

// texts returns the strings of an output of classes.
func texts(t *testing.T, out request.Tensor) []string {
	t.Helper()
	var all []string
	for data := out.Data; len(data) > 0; {
		n := int(binary.LittleEndian.Uint32(data))
		all, data = append(all, string(data[4:4+n])), data[4+n:]
	}
	return all
}

func floats(values ...float32) []byte {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return data
}

func parse(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The texts are those of the real Triton, which lab/conformance compares with many more.
func TestClasses(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, tc := range map[string]struct {
		in        request.Tensor
		isBatched bool
		count     uint32
		labels    []string
		shape     []int64
		want      []string
	}{
		"a row":         {request.Tensor{DataType: configpb.DataType_TYPE_FP32, Shape: []int64{3}, Data: floats(1, 3, 2)}, false, 2, nil, []int64{2}, []string{"3.000000:1", "2.000000:2"}},
		"rows, labels":  {request.Tensor{DataType: configpb.DataType_TYPE_FP32, Shape: []int64{2, 2}, Data: floats(1, 2, 4, 3)}, true, 1, []string{"zero", "one"}, []int64{2, 1}, []string{"2.000000:1:one", "4.000000:0:zero"}},
		"few labels":    {request.Tensor{DataType: configpb.DataType_TYPE_UINT8, Shape: []int64{3}, Data: []byte{1, 2, 3}}, false, 9, []string{"a", ""}, []int64{3}, []string{"3:2", "2:1", "1:0:a"}},
		"signed":        {request.Tensor{DataType: configpb.DataType_TYPE_INT8, Shape: []int64{2}, Data: []byte{0xff, 1}}, false, 2, nil, []int64{2}, []string{"1:1", "-1:0"}},
		"no numbers":    {request.Tensor{DataType: configpb.DataType_TYPE_FP32, Shape: []int64{3}, Data: floats(-inf, inf, nan)}, false, 3, nil, []int64{3}, []string{"inf:1", "-inf:0", "nan:2"}},
		"of two rows":   {request.Tensor{DataType: configpb.DataType_TYPE_UINT8, Shape: []int64{2, 1, 2}, Data: []byte{1, 2, 4, 3}}, false, 2, nil, []int64{2}, []string{"4:2", "3:3"}},
		"nothing":       {request.Tensor{DataType: configpb.DataType_TYPE_UINT8, Shape: []int64{2, 0}}, true, 2, nil, []int64{2, 0}, nil},
		"no rows":       {request.Tensor{DataType: configpb.DataType_TYPE_UINT8, Shape: []int64{0, 2}}, true, 2, nil, []int64{0}, nil},
		"equal, stable": {request.Tensor{DataType: configpb.DataType_TYPE_UINT8, Shape: []int64{3}, Data: []byte{7, 7, 7}}, false, 3, nil, []int64{3}, []string{"7:0", "7:1", "7:2"}},
	} {
		out, err := classification.Of(&tc.in, tc.isBatched, tc.count, tc.labels, nil)
		if err != nil || out.DataType != configpb.DataType_TYPE_STRING {
			t.Errorf("%s: got %v, %v", name, out.DataType, err)
			continue
		}
		if d := cmp.Diff(tc.shape, out.Shape); d != "" {
			t.Errorf("%s: shape (-want +got):\n%s", name, d)
		}
		if d := cmp.Diff(tc.want, texts(t, out)); d != "" {
			t.Errorf("%s: classes (-want +got):\n%s", name, d)
		}
	}
}

// What cannot be sorted is refused, and nothing stays charged.
func TestNoClasses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in     request.Tensor
		memory int64
		want   string
	}{
		"strings":     {request.Tensor{DataType: configpb.DataType_TYPE_STRING, Shape: []int64{1}, Data: make([]byte, 4)}, 1 << 20, "unsupported type 'BYTES'"},
		"half floats": {request.Tensor{DataType: configpb.DataType_TYPE_FP16, Shape: []int64{1}, Data: make([]byte, 2)}, 1 << 20, "unsupported type 'FP16'"},
		"booleans":    {request.Tensor{DataType: configpb.DataType_TYPE_BOOL, Shape: []int64{1}, Data: make([]byte, 1)}, 1 << 20, "unsupported type 'BOOL'"},
		"too many":    {request.Tensor{DataType: configpb.DataType_TYPE_UINT8, Shape: []int64{1_000_001}, Data: make([]byte, 1_000_001)}, 1 << 30, "too large"},
		"short data":  {request.Tensor{DataType: configpb.DataType_TYPE_UINT8, Shape: []int64{2}, Data: make([]byte, 1)}, 1 << 20, "fewer elements"},
		// 100,000 positions of 4 bytes, and as much must stay free
		"no memory for positions": {request.Tensor{DataType: configpb.DataType_TYPE_UINT8, Shape: []int64{100_000}, Data: make([]byte, 100_000)}, 700_000, "take more than"},
		// and texts of 10 bytes and more
		"no memory for texts": {request.Tensor{DataType: configpb.DataType_TYPE_UINT8, Shape: []int64{100_000}, Data: make([]byte, 100_000)}, 2_000_000, "take more than"},
	} {
		b := budget.New(tc.memory)
		_, err := classification.Of(&tc.in, false, math.MaxUint32, nil, b.Open(nil))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		if b.Used() != 0 {
			t.Errorf("%s: %d bytes stay charged", name, b.Used())
		}
	}
}

// Whatever the values are, each position comes once, and values never rise; also where the sort
// runs out of depth, and with NaN, where no order is right.
func TestClassesAreAPermutation(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 400 {
		n := random.IntN(600)
		values := make([]float32, n)
		for i := range values {
			switch round % 4 {
			case 0:
				values[i] = float32(random.IntN(1 + n/8))
			case 1:
				values[i] = float32(min(i, n-i)) // an organ pipe, hard for quicksort
			case 2:
				values[i] = random.Float32()
			default:
				if values[i] = float32(random.IntN(9)); values[i] == 0 {
					values[i] = float32(math.NaN())
				}
			}
		}
		b := budget.New(1 << 30)
		out, err := classification.Of(&request.Tensor{DataType: configpb.DataType_TYPE_FP32, Shape: []int64{int64(n)}, Data: floats(values...)},
			false, uint32(n), nil, b.Open(nil))
		if err != nil {
			t.Fatal(err)
		}
		if b.Used() != int64(len(out.Data)) {
			t.Errorf("%d bytes are charged for %d", b.Used(), len(out.Data))
		}
		seen := map[string]bool{}
		last := math.Inf(1)
		for _, text := range texts(t, out) {
			value, position, _ := strings.Cut(text, ":")
			seen[position] = true
			var v float64
			if round%4 != 3 {
				if v = parse(t, value); v > last {
					t.Fatalf("round %d: %q stands behind %v", round, text, last)
				}
				last = v
			}
		}
		if len(seen) != n {
			t.Fatalf("round %d: %d of %d positions", round, len(seen), n)
		}
	}
}
