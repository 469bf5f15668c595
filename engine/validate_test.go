package engine_test

import (
	"encoding/binary"
	"log/slog"
	"strings"
	"testing"

	"tuner/engine"
	"tuner/engine/enginetest"
	"tuner/engine/fault"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// The texts are those observed on a real Triton. For an incomplete string the text comes from its
// backend, which knows no request.
func TestStringValidation(t *testing.T) {
	t.Parallel()
	text := configpb.DataType_TYPE_STRING
	s, _ := open(t, &enginetest.Backend{IO: modelconfig.ModelIO{
		Inputs:  []modelconfig.Tensor{{Name: "X", DataType: text, Dims: []int64{-1, 2}}},
		Outputs: []modelconfig.Tensor{{Name: "Y", DataType: text, Dims: []int64{-1, 2}}},
	}}, "")
	for data, want := range map[string]string{
		"\x01\x00\x00\x00a\x00\x00\x00\x00":  "",
		"\x01\x00\x00\x00a":                  "expected 2 string elements for inference input 'X' for model 'm', got 1",
		"":                                   "expected 2 string elements for inference input 'X' for model 'm', got 0",
		"\xff\xff\xff\xffa":                  "expected 2 string elements for inference input 'X' for model 'm', got 1",
		"\x00\x00\x00\x00\x05\x00\x00\x00ab": "incomplete string data for inference input 'X', expecting string of length 5 but only 2 bytes available",
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00": "unexpected number of string elements 3 for inference input 'X' for model 'm', expecting 2",
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00":     "incomplete string length indicator for inference input 'X' for model 'm', expecting 4 bytes but only 3 bytes available. Please make sure the string length indicator is in one buffer.",
	} {
		r := &engine.Request{Model: "m", Inputs: []engine.Tensor{{Name: "X", DataType: text, Shape: []int64{1, 2}, Data: []byte(data)}}}
		response, err := s.Infer(t.Context(), r)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			response.Release()
		}
		if want != "" && !strings.HasPrefix(want, "incomplete string data") {
			want = "[request id: <id_unknown>] " + want
		}
		if got != want {
			t.Errorf("%q:\n got %s\nwant %s", data, got, want)
		}
	}
}

// With so many inputs, comparing all pairs would take too long. The answer must come at once, and
// name the mistake.
func TestManyInputs(t *testing.T) {
	t.Parallel()
	s, _ := open(t, &enginetest.Backend{}, "")
	r := &engine.Request{Model: "m"}
	for i := range 100_000 {
		r.Inputs = append(r.Inputs, engine.Tensor{Name: string(rune('a'+i%26)) + string(rune(0x4e00+i/26))})
	}
	if _, err := s.Infer(t.Context(), r); fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("got %v", fault.CodeOf(err))
	}
	r.Inputs[99_999].Name = r.Inputs[7].Name
	want := "[request id: <id_unknown>] input '" + r.Inputs[7].Name + "' already exists in request"
	if _, err := s.Infer(t.Context(), r); err == nil || err.Error() != want {
		t.Errorf("got %.80v, want %s", err, want)
	}
}

// For any bytes and shape, nothing panics. A request that is answered had exactly as many complete
// strings as its shape.
func FuzzStrings(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00a\x00\x00\x00\x00"), int64(1), int64(2))
	f.Add([]byte("\xff\xff\xff\xff"), int64(1), int64(1))
	f.Add([]byte(""), int64(0), int64(-1))
	f.Add([]byte("\x00\x00\x00\x00"), int64(1<<62), int64(4))
	text := configpb.DataType_TYPE_STRING
	root := f.TempDir()
	enginetest.WriteModel(f, root, "m", "max_batch_size: 4")
	s, err := engine.Open(f.Context(), engine.Options{Repositories: []string{root}, ExitOnError: true, Log: slog.New(slog.DiscardHandler),
		Backend: &enginetest.Backend{IO: modelconfig.ModelIO{
			Inputs:  []modelconfig.Tensor{{Name: "X", DataType: text, Dims: []int64{-1, -1}}},
			Outputs: []modelconfig.Tensor{{Name: "Y", DataType: text, Dims: []int64{-1, -1}}},
		}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, data []byte, rows, columns int64) {
		r := &engine.Request{Model: "m", Inputs: []engine.Tensor{{Name: "X", DataType: text, Shape: []int64{rows, columns}, Data: data}}}
		response, err := s.Infer(t.Context(), r)
		if err != nil {
			if fault.CodeOf(err) != fault.InvalidArgument {
				t.Errorf("shape [%d,%d]: %v", rows, columns, err)
			}
			return
		}
		defer response.Release()
		count := int64(0)
		for rest := data; len(rest) > 0; count++ {
			rest = rest[4+binary.LittleEndian.Uint32(rest):]
		}
		if count != rows*columns {
			t.Errorf("shape [%d,%d] was accepted with %d strings", rows, columns, count)
		}
	})
}
