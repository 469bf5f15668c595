package build

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
)

// stored makes a safetensors file from a header and n bytes of data: 1, 2, 3 … as floats.
func stored(header string, n int) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	file = append(file, header...)
	for i := range n / 4 {
		file = binary.LittleEndian.AppendUint32(file, math.Float32bits(float32(i+1)))
	}
	return file
}

const header = `{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},` +
	`"b":{"dtype":"F32","shape":[1,1],"data_offsets":[8,12]},"ids":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}`

func TestSafetensors(t *testing.T) {
	t.Parallel()
	s, err := parseSafetensors(stored(header, 12))
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, shape []int64, want ...float32) {
		t.Helper()
		got, err := s.floats(name, shape...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", name, diff)
		}
	}
	check("a", []int64{2}, 1, 2)
	check("b", []int64{1, 1}, 3)
	refuse := func(want, name string, shape ...int64) {
		t.Helper()
		if _, err := s.floats(name, shape...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	refuse("no tensor", "c")
	refuse("is F32[2], expected F32[3]", "a", 3)
	refuse("is I64[1]", "ids", 1)
}

func TestSafetensorsRefuses(t *testing.T) {
	t.Parallel()
	check := func(want string, file []byte) {
		t.Helper()
		if _, err := parseSafetensors(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	one := func(entry string) string { return `{"a":` + entry + `}` }
	check("shorter than its header", []byte{1, 2})
	check("does not fit", stored(header, 12)[:20])
	check("does not fit", binary.LittleEndian.AppendUint64(nil, math.MaxUint64))
	check("header", stored("{", 0))
	check("truncated?", stored(header, 8))
	check("outside", stored(one(`{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}`), 8))
	check("outside", stored(one(`{"dtype":"F32","shape":[1],"data_offsets":[8,4]}`), 8))
	check("does not fit into 8 bytes", stored(one(`{"dtype":"F32","shape":[3],"data_offsets":[0,8]}`), 8))
	check("does not fit into 8 bytes", stored(one(`{"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]}`), 8))
	check(`"extra"`, stored(one(`{"dtype":"F32","shape":[2],"data_offsets":[0,8],"extra":1}`), 8))
}

func TestMiniLMSaysWhatItsWeightsLack(t *testing.T) {
	t.Parallel()
	_, err := MiniLM(stored(header, 12))
	// The error names all parameters, including the first and the last.
	for _, want := range []string{`"embeddings.word_embeddings.weight"`, `"encoder.layer.5.output.LayerNorm.bias"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s", want)
		}
	}
}

// No input makes the reader panic. Every accepted float tensor can be read in its own shape.
func FuzzSafetensors(f *testing.F) {
	f.Add(stored(header, 12))
	f.Add(stored(header, 8))
	f.Add(stored(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0))
	f.Fuzz(func(t *testing.T, file []byte) {
		defer alloctest.Bound(t, len(file))()
		s, err := parseSafetensors(file)
		if err != nil {
			return
		}
		for name, tensor := range s.tensors {
			if tensor.Type != "F32" {
				continue
			}
			values, err := s.floats(name, tensor.Shape...)
			if err != nil {
				t.Fatal(err)
			}
			if int64(len(values)) != product(tensor.Shape) {
				t.Errorf("%q has %d values, its shape is %v", name, len(values), tensor.Shape)
			}
		}
	})
}
