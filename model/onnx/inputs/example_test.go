package inputs_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/onnxpb"
)

// modelOf makes a model with inputs and metadata: a key and its value, alternately.
func modelOf(list []onnx.Value, metadata ...string) *onnx.Model {
	g := build.NewGraph("model")
	for _, v := range list {
		g.Input(v.Name, v.Type, v.Shape...)
	}
	p := proto.Clone(g.Model().Proto()).(*onnxpb.ModelProto)
	for i := 0; i+1 < len(metadata); i += 2 {
		p.MetadataProps = append(p.MetadataProps, &onnxpb.StringStringEntryProto{Key: &metadata[i], Value: &metadata[i+1]})
	}
	return onnx.New(p)
}

func TestExamples(t *testing.T) {
	t.Parallel()
	open, symbol, fixed := onnx.Dim{Size: -1}, onnx.Symbol, onnx.Fixed
	value := func(name string, t onnx.DataType, shape ...onnx.Dim) onnx.Value {
		return onnx.Value{Name: name, Type: t, Shape: shape}
	}
	const (
		row, text  = "a batch of one", "a text of 128 tokens"
		first      = "the first dimension, taken for a batch of one"
		picture    = "sides of 224 pixels, as images of ImageNet"
		second     = "one second of sound at 16000 Hz"
		frames     = "100 frames of features, one second"
		unknown    = "32, a guess: no name tells what it counts"
		chunk      = "a chunk of 512 samples, usual for voice activity at 16000 Hz"
		fromFile   = "sides of 640 pixels, as the file's metadata says"
		steps      = "a sequence of 128 steps"
		oneOfThree = "a side of 48 pixels, as the other one"
	)
	size := func(n int64, reason string) inputs.Size { return inputs.Size{Size: n, Reason: reason} }
	no := func(n int64) inputs.Size { return size(n, "") }
	vad := []onnx.Value{value("input", onnx.Float, open, open), value("state", onnx.Float, fixed(2), open, fixed(128)), value("sr", onnx.Int64)}
	for name, c := range map[string]struct {
		inputs   []onnx.Value
		metadata []string
		want     []inputs.Size // of the first input
	}{
		"a text":               {[]onnx.Value{value("input_ids", onnx.Int64, symbol("batch"), symbol("sequence"))}, nil, []inputs.Size{size(1, row), size(128, text)}},
		"a text without names": {[]onnx.Value{value("input_ids", onnx.Int64, open, open)}, nil, []inputs.Size{size(1, first), size(128, text)}},
		"numbers of a kind":    {[]onnx.Value{value("x", onnx.Int64, symbol("unk__1"), symbol("unk__2"))}, nil, []inputs.Size{size(1, first), size(128, text)}},
		"one sequence":         {[]onnx.Value{value("ids", onnx.Int64, symbol("seq"))}, nil, []inputs.Size{size(128, text)}},
		"steps":                {[]onnx.Value{value("x", onnx.Float, symbol("batch"), symbol("seq_len"), fixed(8))}, nil, []inputs.Size{size(1, row), size(128, steps), no(8)}},
		"a length":             {[]onnx.Value{value("x_lengths", onnx.Int64, symbol("N"))}, nil, []inputs.Size{size(1, "the length of one sequence")}},
		"lengths of a batch":   {[]onnx.Value{value("x_lengths", onnx.Int64, symbol("batch_size"))}, nil, []inputs.Size{size(1, row)}},
		"an image":             {[]onnx.Value{value("x", onnx.Float, open, fixed(3), open, open)}, nil, []inputs.Size{size(1, first), no(3), size(224, picture), size(224, picture)}},
		"one channel, last":    {[]onnx.Value{value("x", onnx.Uint8, fixed(1), symbol("h"), symbol("w"), fixed(1))}, nil, []inputs.Size{no(1), size(224, picture), size(224, picture), no(1)}},
		"the file's side": {[]onnx.Value{value("images", onnx.Float, symbol("batch"), fixed(3), symbol("height"), symbol("width"))}, []string{"stride", "32", "imgsz", "[640, 640]"},
			[]inputs.Size{size(1, row), no(3), size(640, fromFile), size(640, fromFile)}},
		"no side at all": {[]onnx.Value{value("x", onnx.Float, open, fixed(3), open, open)}, []string{"imgsz", "auto"}, []inputs.Size{size(1, first), no(3), size(224, picture), size(224, picture)}},
		"a line of text": {[]onnx.Value{value("x", onnx.Float, fixed(1), fixed(3), fixed(48), open)}, nil, []inputs.Size{no(1), no(3), no(48), size(320, "a line of text of 48 × 320 pixels")}},
		"a line by its characters": {[]onnx.Value{value("x", onnx.Float, open, fixed(3), open, open)}, []string{"character", "a\nb"},
			[]inputs.Size{size(1, first), no(3), size(48, "a line of text of 48 × 320 pixels"), size(320, "a line of text of 48 × 320 pixels")}},
		"a fixed width":  {[]onnx.Value{value("x", onnx.Float, fixed(1), fixed(3), open, fixed(48))}, nil, []inputs.Size{no(1), no(3), size(48, oneOfThree), no(48)}},
		"sides by names": {[]onnx.Value{value("x", onnx.Float, symbol("Height"), symbol("width"))}, nil, []inputs.Size{size(224, picture), size(224, picture)}},
		"a mask":         {[]onnx.Value{value("attention_mask", onnx.Float, fixed(1), fixed(1), symbol("s"), symbol("s"))}, nil, []inputs.Size{no(1), no(1), size(32, unknown), size(32, unknown)}},
		"a cache":        {[]onnx.Value{value("past", onnx.Float, symbol("batch"), fixed(12), symbol("past_sequence_length"), fixed(64))}, nil, []inputs.Size{size(1, row), no(12), size(128, steps), no(64)}},
		"a sum": {[]onnx.Value{value("mask", onnx.Int64, symbol("batch"), symbol("past + 1")), value("past", onnx.Float, symbol("batch"), symbol("past"))}, nil,
			[]inputs.Size{size(1, row), size(33, `the sum "past + 1"`)}},
		"one symbol, two roles": {[]onnx.Value{value("points", onnx.Float, symbol("n"), fixed(2)), value("images", onnx.Float, fixed(1), fixed(3), symbol("n"), fixed(96))}, nil,
			[]inputs.Size{size(96, "a side of 96 pixels, as the other one"), no(2)}},
		"sound":                 {[]onnx.Value{value("audio", onnx.Float, symbol("batch"), open)}, nil, []inputs.Size{size(1, row), size(16_000, second)}},
		"sound at another rate": {[]onnx.Value{value("wav", onnx.Float, open)}, []string{"sample_rate", "22050"}, []inputs.Size{size(22_050, "one second of sound at 22050 Hz, as sample_rate of the file says")}},
		"voice activity":        {vad, nil, []inputs.Size{size(1, first), size(512, chunk)}},
		"a state":               {[]onnx.Value{vad[1]}, nil, []inputs.Size{no(2), size(1, "a state for a batch of one"), no(128)}},
		"a spectrogram":         {[]onnx.Value{value("x", onnx.Float, fixed(1), fixed(3), symbol("frames"), fixed(160))}, nil, []inputs.Size{no(1), no(3), size(100, frames), no(160)}},
		"frames by time":        {[]onnx.Value{value("x", onnx.Float, symbol("N"), symbol("T"), fixed(80))}, nil, []inputs.Size{size(1, first), size(100, frames), no(80)}},
		"frames by features":    {[]onnx.Value{value("log_mel", onnx.Float, fixed(1), fixed(80), open)}, nil, []inputs.Size{no(1), no(80), size(100, frames)}},
		"whole numbers":         {[]onnx.Value{value("x", onnx.Int64, fixed(1), fixed(3), open, open)}, nil, []inputs.Size{no(1), no(3), size(32, unknown), size(32, unknown)}},
		"a count of something":  {[]onnx.Value{value("boxes", onnx.Float, symbol("num_boxes"), fixed(4))}, nil, []inputs.Size{size(32, unknown), no(4)}},
		"a scalar":              {[]onnx.Value{value("sr", onnx.Int64)}, nil, []inputs.Size{}},
	} {
		got := inputs.Examples(modelOf(c.inputs, c.metadata...))
		if diff := cmp.Diff(c.want, got[c.inputs[0].Name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// For any names, types and shapes: every open dimension has a size of 1 or more, and a reason; a
// fixed one keeps its size, without a reason; a symbol has one size.
func TestExamplesProperties(t *testing.T) {
	t.Parallel()
	names := []string{"x", "input_ids", "attention_mask", "audio", "mel", "sr", "state", "images", "lens", "", "é"}
	symbols := []string{"batch", "seq", "T", "height", "n", "past + 1", "past + seq", "9223372036854775807 + 1", "+", "unk__3", "time", "samples"}
	values := []string{"", "640", "[0, 0]", "-1", "99999999999999999999", "16000"}
	types := onnx.ServableTypes()
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	for range 5000 {
		var list []onnx.Value
		for n := range 1 + r.IntN(4) {
			v := onnx.Value{Name: pick(names), Type: types[r.IntN(len(types))]}
			if n > 0 {
				v.Name += string(rune('0' + n)) // names are unique
			}
			for range r.IntN(5) {
				v.Shape = append(v.Shape, []onnx.Dim{{Size: -1}, onnx.Fixed(r.Int64N(200)), onnx.Symbol(pick(symbols))}[r.IntN(3)])
			}
			list = append(list, v)
		}
		bySymbol := map[string]int64{}
		sizes := inputs.Examples(modelOf(list, "imgsz", pick(values), "sample_rate", pick(values)))
		for _, v := range list {
			if len(sizes[v.Name]) != len(v.Shape) {
				t.Fatalf("%v has %d sizes", v, len(sizes[v.Name]))
			}
			for i, s := range sizes[v.Name] {
				d := v.Shape[i]
				switch {
				case d.IsFixed() && (s.Reason != "" || s.Size != d.Size), !d.IsFixed() && (s.Reason == "" || s.Size < 1):
					t.Fatalf("%v: dimension %d has size %d (%q)", v, i, s.Size, s.Reason)
				case d.Symbol != "" && bySymbol[d.Symbol] > 0 && bySymbol[d.Symbol] != s.Size:
					t.Fatalf("%q is %d and %d", d.Symbol, bySymbol[d.Symbol], s.Size)
				case d.Symbol != "":
					bySymbol[d.Symbol] = s.Size
				}
			}
		}
	}
}
