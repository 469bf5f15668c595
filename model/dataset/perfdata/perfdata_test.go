package perfdata_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
	"tuner/model/dataset/elements"
	"tuner/model/dataset/perfdata"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// The inputs and outputs of the test files.
var (
	in = []perfdata.Spec{
		{Name: "x", Type: onnx.Float, Dims: []int64{2, 2}},
		{Name: "ids", Type: onnx.Int64, Dims: []int64{-1}},
		{Name: "free", Type: onnx.Uint8, Dims: []int64{-1, -1}},
		{Name: "text", Type: onnx.String, Dims: []int64{2}},
		{Name: "flag", Type: onnx.Bool, Dims: []int64{2}},
		{Name: "half", Type: onnx.Float16, Dims: []int64{1}},
		{Name: "any", Type: onnx.Int8},
		{Name: "large", Type: onnx.Uint64, Dims: []int64{1}},
	}
	out = []perfdata.Spec{{Name: "y", Type: onnx.Int32, Dims: []int64{1}}}
)

func floats(t onnx.DataType, shape []int64, values ...float64) inputs.Tensor {
	tensor := inputs.Tensor{Type: t, Shape: shape}
	for _, v := range values {
		tensor.Data = onnx.AppendFloat(tensor.Data, t, v)
	}
	return tensor
}

func integers(t onnx.DataType, shape []int64, values ...int64) inputs.Tensor {
	tensor := inputs.Tensor{Type: t, Shape: shape}
	for _, v := range values {
		tensor.Data = onnx.AppendInteger(tensor.Data, t, v)
	}
	return tensor
}

func texts(values ...string) inputs.Tensor {
	tensor := inputs.Tensor{Type: onnx.String, Shape: []int64{int64(len(values))}}
	for _, v := range values {
		tensor.Strings = append(tensor.Strings, []byte(v))
	}
	return tensor
}

func TestParseForms(t *testing.T) {
	t.Parallel()
	check := func(name, step string, want perfdata.Step) {
		got, err := perfdata.Parse([]byte(`{"data": [{`+step+`}]}`), in, out)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(perfdata.File{Streams: [][]perfdata.Step{{want}}}, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	square := []int64{2, 2}
	check("flat", `"x": [1.5, 2, -3e2, 0]`, perfdata.Step{"x": floats(onnx.Float, square, 1.5, 2, -300, 0)})
	check("content and shape", `"x": {"content": [1, 2, 3, 4], "shape": [2, 2]}`, perfdata.Step{"x": floats(onnx.Float, square, 1, 2, 3, 4)})
	check("infinite", `"x": [Inf, -Inf, Infinity, -Infinity]`, perfdata.Step{"x": floats(onnx.Float, square, math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1))})
	check("one open size", `"ids": [7, -8, 9]`, perfdata.Step{"ids": integers(onnx.Int64, []int64{3}, 7, -8, 9)})
	check("two open sizes", `"free": {"content": [1, 2], "shape": [1, 2]}`, perfdata.Step{"free": integers(onnx.Uint8, []int64{1, 2}, 1, 2)})
	check("unknown shape", `"any": [1, -1]`, perfdata.Step{"any": integers(onnx.Int8, []int64{2}, 1, -1)})
	check("nothing", `"ids": []`, perfdata.Step{"ids": {Type: onnx.Int64, Shape: []int64{0}}})
	check("text", `"text": ["Inf \"NaN\"", "é"]`, perfdata.Step{"text": texts(`Inf "NaN"`, "é")})
	check("truth", `"flag": [true, 0]`, perfdata.Step{"flag": integers(onnx.Bool, []int64{2}, 1, 0)})
	check("half", `"half": [0.5]`, perfdata.Step{"half": floats(onnx.Float16, []int64{1}, 0.5)})
	// 2^64 - 1 has the bits of -1.
	check("beyond int64", `"large": [18446744073709551615]`, perfdata.Step{"large": integers(onnx.Uint64, []int64{1}, -1)})
	check("several, and the key of other services", `"half": [1], "model": "other", "flag": [1, 1]`,
		perfdata.Step{"half": floats(onnx.Float16, []int64{1}, 1), "flag": integers(onnx.Bool, []int64{2}, 1, 1)})
	// base64 of 01 02, and of 01 00 00 00 'a' 00 00 00 00, the protocol's form of "a" and "".
	check("base64", `"free": {"content": {"b64": "AQI="}, "shape": [2, 1]}`, perfdata.Step{"free": integers(onnx.Uint8, []int64{2, 1}, 1, 2)})
	check("base64 alone", `"any": {"b64": "AQI="}`, perfdata.Step{"any": integers(onnx.Int8, []int64{2}, 1, 2)})
	check("base64 with shape", `"any": {"b64": "AQI=", "shape": [1, 2]}`, perfdata.Step{"any": integers(onnx.Int8, []int64{1, 2}, 1, 2)})
	check("base64 of text", `"text": {"b64": "AQAAAGEAAAAA"}`, perfdata.Step{"text": texts("a", "")})
}

func TestParseNaN(t *testing.T) {
	t.Parallel()
	file, err := perfdata.Parse([]byte(`{"data": [{"half": [NaN]}]}`), in, out)
	if err != nil {
		t.Fatal(err)
	}
	if v := elements.Floats(file.Streams[0][0]["half"])[0]; !math.IsNaN(v) {
		t.Errorf("NaN became %v", v)
	}
}

func TestParseStreams(t *testing.T) {
	t.Parallel()
	step := func(v int64) perfdata.Step { return perfdata.Step{"ids": integers(onnx.Int64, []int64{1}, v)} }
	answer := func(v int64) perfdata.Step { return perfdata.Step{"y": integers(onnx.Int32, []int64{1}, v)} }
	check := func(text string, want perfdata.File) {
		got, err := perfdata.Parse([]byte(text), in, out)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", text, diff)
		}
	}
	check(`{"data": [{"ids": [1]}, {"ids": [2]}]}`, perfdata.File{Streams: [][]perfdata.Step{{step(1), step(2)}}})
	check(`{"data": [[{"ids": [1]}, {"ids": [2]}], [{"ids": [3]}]]}`, perfdata.File{Streams: [][]perfdata.Step{{step(1), step(2)}, {step(3)}}})
	check(`{"validation_data": [[{"y": [5]}]], "data": [[{"ids": [1]}]]}`,
		perfdata.File{Streams: [][]perfdata.Step{{step(1)}}, Expected: [][]perfdata.Step{{answer(5)}}})
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	refuse := func(text, want string) {
		_, err := perfdata.Parse([]byte(text), in, out)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	step := func(step, want string) { refuse(`{"data": [{`+step+`}]}`, want) }
	refuse(``, "it is not JSON")
	refuse(`{"data": [`, "it is not JSON")
	refuse(`[]`, "it is []")
	refuse(`{}`, `it has no "data"`)
	refuse(`{"data": []}`, `it has no "data"`)
	refuse(`{"data": [{}]} {}`, "has text after its end")
	refuse(`{"data": [{}]}]`, "has text after its end")
	refuse(`{"data": [{}]}}`, "has text after its end")
	refuse(`{"data": 5}`, "data: it is 5")
	refuse(`{"data": [{}], "rows": []}`, `"rows" is unknown`)
	refuse(`{"data": [{}], "data": [{}]}`, `"data" is given twice`)
	refuse(`{"data": [{}, [{}]]}`, "data[1]: streams (lists of steps) and plain steps are mixed")
	refuse(`{"data": [[{}], {}]}`, "data[1]: streams (lists of steps) and plain steps are mixed")
	refuse(`{"data": [[{}], []]}`, "data[1]: the stream has no steps")
	refuse(`{"data": [[{}], [{}, null]]}`, "data[1][1]: it is null")
	refuse(`{"data": [{}], "validation_data": [{}, {}]}`, "validation_data has 2 steps in stream 0, data has 1")
	refuse(`{"data": [[{}]], "validation_data": [[{}], [{}]]}`, "validation_data has 2 streams, data has 1")
	refuse(`{"data": [{}], "validation_data": [{"x": [1]}]}`, `validation_data[0]: the model has no "x"; it has ["y"]`)
	step(`"y": [1]`, `data[0]: the model has no "y"; it has ["x" "ids"`)
	step(`"ids": 5`, "data[0].ids: it is 5")
	step(`"ids": [[1], [2]]`, "data[0].ids: value 0: the values must be one flat list")
	step(`"ids": [1.5]`, "1.5 is not a whole number of INT64")
	step(`"ids": [null]`, "null is not a value of INT64")
	step(`"ids": ["7"]`, `"7" is text, but the model takes INT64`)
	step(`"ids": [true]`, "true is a boolean, but the model takes INT64")
	step(`"any": [128]`, "128 is not a whole number of INT8 (-128 … 127)")
	step(`"large": [18446744073709551616]`, "18446744073709551616 is not a whole number of UINT64")
	step(`"large": [-1]`, "-1 is not a whole number of UINT64")
	step(`"flag": [2, 1]`, "2 is not a whole number of BOOL (0 … 1)")
	step(`"text": [1, 2]`, "1 is a number, but the model takes text")
	step(`"x": [1e39, 1, 1, 1]`, "1e39 does not fit FLOAT")
	step(`"half": [65520]`, "65520 does not fit FLOAT16")
	step(`"half": [1e999]`, "1e999 does not fit FLOAT16")
	step(`"x": [1, 2, 3]`, "it has 3 values, but its shape [2 2] needs 4")
	step(`"x": {"content": [1, 2, 3, 4], "shape": [4]}`, "the shape [4] does not fit the model's [2 2] (without the batch dimension)")
	step(`"x": {"content": [1, 2, 3, 4], "shape": 4}`, "the shape 4 is not a list")
	step(`"any": {"content": [1], "shape": [-1]}`, "its shape [-1]")
	step(`"free": [1, 2]`, "leaves several sizes open; give the shape")
	step(`"x": {"shape": [2, 2]}`, `it has no "content"`)
	step(`"x": {"content": [], "b64": ""}`, "leave one out")
	step(`"x": {"content": [], "dims": [1]}`, `"dims" is unknown`)
	step(`"x": {"content": 1}`, `it is 1`)
	step(`"x": {"b64": "?"}`, "b64: illegal base64")
	step(`"x": {"b64": "AQI="}`, "b64: 2 bytes are not a whole number of FLOAT")
	step(`"text": {"b64": "AQI="}`, "each text needs its length before it")
	step(`"text": {"b64": "/////wE="}`, "each text needs its length before it") // length 2^32 - 1
}

// Data that is read matches the model. Every tensor has as many values as its shape.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{"data": [{"x": [1, 2, 3, 4.5], "ids": [7]}, {"text": ["a", "b"]}]}`,
		`{"data": [[{"free": {"content": {"b64": "AQI="}, "shape": [2, 1]}}], [{"flag": [true, 0]}]]}`,
		`{"data": [{"half": [NaN]}], "validation_data": [{"y": [1]}]}`,
		`{"data": [{"text": {"b64": "AQAAAGEAAAAA"}, "model": 1}]}`,
		"{\"data\": [ \n{ \"any\" : \t[ ] } ] }",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var file perfdata.File
		var err error
		// a buffer that grew counts twice
		if used := alloctest.Bytes(func() { file, err = perfdata.Parse(text, in, out) }); used > 2*uint64(10*len(text)+64<<20) {
			t.Errorf("%d bytes took %d", len(text), used)
		}
		if err != nil {
			return
		}
		for _, stream := range file.Streams {
			for _, step := range stream {
				for name, tensor := range step {
					n, ok := onnx.Elements(tensor.Shape)
					have := int64(len(tensor.Strings))
					if size := tensor.Type.Size(); size > 0 {
						have = int64(len(tensor.Data)) / size
					}
					if !ok || n != have {
						t.Errorf("%s: %d values of shape %v", name, have, tensor.Shape)
					}
				}
			}
		}
	})
}
