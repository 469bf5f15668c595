package inputs

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tuner/model/onnx"
)

// Example sizes of open dimensions.
const (
	exampleText    = 128 // tokens: MLPerf's and Hugging Face's benchmarks of encoders use 128
	exampleSide    = 224 // pixels: ImageNet's crops
	exampleLine    = 320 // pixels: the width of PP-OCR's lines of text
	exampleHeight  = 48  // pixels: their height since PP-OCR's version 3
	exampleFrames  = 100 // frames of features: a second at the usual hop of 10 ms
	exampleUnknown = 32
	// exampleRate is the sampling rate of speech models in Hz.
	exampleRate = 16_000
	// A voice activity detector takes 512 samples at 16 kHz, as Silero's does.
	chunksPerSecond = float64(exampleRate) / 512
)

// The heights of a line of text, in pixels. PP-OCR's recognizers have 32 or 48, others up to 64.
const (
	lowestLine  = 16
	highestLine = 64
)

// fewestFeatures is the smallest number of features of a frame. Speech has 40 or more, of some kinds
// 20.
const fewestFeatures = 20

// Size is the size of a dimension in an example request.
type Size struct {
	Size   int64
	Reason string // for people: "a text of 128 tokens"; "" if the file fixes the size
}

// Examples returns a size for each dimension of every input, by the input's name: its fixed size, or
// a plausible one for an open dimension. It goes by the names and the roles of dimensions, and by the
// model's metadata. Dimensions with the same symbol get the same size. The batch dimension is
// treated like the others.
func Examples(m *onnx.Model) map[string][]Size {
	g := newGuesser(m)
	symbols := map[string]guess{}
	for _, v := range m.Inputs() {
		for i, d := range v.Shape {
			if d.IsFixed() || d.Symbol == "" {
				continue
			}
			if found := g.guess(v, i); found.strength > symbols[d.Symbol].strength {
				symbols[d.Symbol] = found
			}
		}
	}
	sizes := make(map[string][]Size, len(m.Inputs()))
	group := Groups(m)
	for _, v := range m.Inputs() {
		list := make([]Size, len(v.Shape))
		for i, d := range v.Shape {
			switch {
			case d.IsFixed():
				list[i] = Size{Size: d.Size}
			case i == 0 && group.Size > 1:
				list[i] = group
			case d.Symbol == "":
				list[i] = g.guess(v, i).Size
			default:
				list[i] = sumOf(d.Symbol, symbols)
			}
		}
		sizes[v.Name] = list
	}
	return sizes
}

// guess is a size with the strength of its evidence. If two dimensions with the same symbol give
// different sizes, the stronger one counts.
type guess struct {
	Size
	strength int
}

// The strengths of evidence.
const (
	isGuessed  = 1 + iota // nothing tells
	isTyped               // the data type and the position tell
	isNamed               // the name tells
	isPictured            // the dimension is the side of an image
	isBatch               // the name says that it is the batch
)

// sumOf returns the size of a symbol. Exporters write sums of other symbols too, such as
// "past_sequence_length + 1".
func sumOf(symbol string, symbols map[string]guess) Size {
	parts := strings.Split(symbol, "+")
	sum := int64(0)
	for _, part := range parts {
		part = strings.TrimSpace(part)
		n, err := strconv.ParseInt(part, 10, 32)
		other, known := symbols[part]
		switch {
		case len(parts) > 1 && err == nil && n > 0:
			sum += n
		case len(parts) > 1 && known:
			sum += other.Size.Size
		default:
			return symbols[symbol].Size
		}
	}
	return Size{sum, fmt.Sprintf("the sum %q", symbol)}
}

// guesser guesses the sizes of a model's inputs.
type guesser struct {
	side     int64 // of images by the model's metadata; 0 without
	reads    bool  // lines of text: the metadata has the characters
	rate     int64 // sampling rate in Hz
	rateName string
	hears    bool // an input is a sampling rate
	detects  bool // of a voice: it has an input for its state
}

func newGuesser(m *onnx.Model) guesser {
	g := guesser{rate: exampleRate}
	for _, p := range m.Proto().GetMetadataProps() {
		switch strings.ToLower(p.GetKey()) {
		case "imgsz", "image_size", "img_size", "input_size":
			g.side = cmp.Or(sideIn(p.GetValue()), g.side)
		case "character", "characters":
			g.reads = true
		case "sample_rate", "sampling_rate", "samplerate":
			if rate := numberIn(p.GetValue()); rate >= 1000 && rate <= 200_000 {
				g.rate, g.rateName = rate, p.GetKey()
			}
		}
	}
	for _, v := range m.Inputs() {
		g.hears = g.hears || isRate(v.Name)
		g.detects = g.detects || v.Type.IsFloat() && slices.Contains(stateNames, strings.ToLower(v.Name))
	}
	return g
}

// stateNames are the usual names of a recurrent state.
var stateNames = []string{"state", "h", "c", "h0", "c0", "hidden", "cell", "hidden_state", "context"}

// numbers matches whole numbers in the text of a metadata entry: "[640, 640]", "640x640".
var numbers = regexp.MustCompile(`[0-9]+`)

// sideIn returns the last number in a metadata entry if it can be the side of an image, and 0 if
// not.
func sideIn(text string) int64 {
	if n := numberIn(text); n >= 8 && n <= 16_384 {
		return n
	}
	return 0
}

// numberIn returns the last whole number in a text, and 0 without one.
func numberIn(text string) int64 {
	all := numbers.FindAllString(text, -1)
	if len(all) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(all[len(all)-1], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// guess returns the size of an open dimension by the first rule that applies.
func (g guesser) guess(v onnx.Value, i int) guess {
	symbol := strings.ToLower(v.Shape[i].Symbol)
	mayBeBatch := i == 0 && len(v.Shape) > 1
	side, why := g.sideOf(v, i)
	switch {
	case strings.Contains(symbol, "batch") || symbol == "bs":
		return guess{Size{1, "a batch of one"}, isBatch}
	case has(symbol, "frame", "time") && v.Type.IsFloat():
		return guess{frames(), isNamed}
	case isState(strings.ToLower(v.Name)) && len(v.Shape) == 3 && i == 1 && isNameless(symbol): // layers, batch, units
		return guess{Size{1, "a state for a batch of one"}, isNamed}
	case side > 0 && i > 0: // the channels are fixed
		return guess{Size{side, why}, isPictured}
	case has(symbol, "height", "width") || slices.Contains([]string{"h", "w"}, symbol):
		side, why = g.usualSide()
		return guess{Size{side, why}, isNamed}
	case g.isAudio(v) && !mayBeBatch, has(symbol, "sample", "audio", "wav"):
		return guess{g.samples(), isNamed}
	case !mayBeBatch && isFrames(v, symbol):
		return guess{frames(), isNamed}
	case len(v.Shape) == 1 && v.Type.IsInteger() && has(strings.ToLower(v.Name), "len"):
		return guess{Size{1, "the length of one sequence"}, isNamed}
	case has(symbol, textWords...), !mayBeBatch && isText(v):
		return guess{sequence(v), isNamed}
	case mayBeBatch && isNameless(symbol):
		return guess{Size{1, "the first dimension, taken for a batch of one"}, isTyped}
	case !mayBeBatch && !v.Type.IsFloat() && len(v.Shape) <= 2 && isNameless(symbol):
		return guess{sequence(v), isTyped}
	}
	return guess{Size{exampleUnknown, fmt.Sprintf("%d, a guess: no name tells what it counts", exampleUnknown)}, isGuessed}
}

// frames returns the size of a piece of sound in frames of features.
func frames() Size {
	return Size{exampleFrames, fmt.Sprintf("%d frames of features, one second", exampleFrames)}
}

// has reports whether a name contains one of the words.
func has(name string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
}

// textWords occur in the symbols of sequences.
var textWords = []string{"seq", "len", "tok", "word", "char", "sentence", "text", "ctx", "context"}

// isText reports whether an input's name is that of a text.
func isText(v onnx.Value) bool {
	return !v.Type.IsFloat() && has(strings.ToLower(v.Name), "ids", "token", "mask", "attention", "text", "char", "word", "segment") ||
		strings.Contains(strings.ToLower(v.Name), "mask") && len(v.Shape) <= 2
}

// sequence returns the size of a sequence: tokens of a text, or steps of numbers.
func sequence(v onnx.Value) Size {
	if v.Type.IsFloat() && !isText(v) {
		return Size{exampleText, fmt.Sprintf("a sequence of %d steps", exampleText)}
	}
	return Size{exampleText, fmt.Sprintf("a text of %d tokens", exampleText)}
}

// nameless matches the symbols that exporters invent: "unk__12", "s0", "DynamicDimension.1",
// "axis_0", "N".
var nameless = regexp.MustCompile(`^(|none|-1|[a-z]|[a-z]\d+|unk.*|.*dynamic.*|.*(dim|axis|axes).*|\w+_\d+)$`)

func isNameless(symbol string) bool { return nameless.MatchString(symbol) }

// isRate reports whether an input is a sampling rate by its name.
func isRate(name string) bool {
	return slices.Contains([]string{"sr", "rate", "sample_rate", "sampling_rate", "samplerate"}, strings.ToLower(name))
}

// isAudio reports whether an input has samples of sound: by its name, or in a model that asks for
// the sampling rate.
func (g guesser) isAudio(v onnx.Value) bool {
	name := strings.ToLower(v.Name)
	if len(v.Shape) > 3 || !v.Type.IsFloat() && v.Type != onnx.Int16 || isState(name) {
		return false
	}
	return has(name, "audio", "wav", "speech", "pcm", "sound", "signal", "samples") && !isFeatures(v) ||
		g.hears && len(v.Shape) <= 2 && !has(name, "mask")
}

func isState(name string) bool { return slices.Contains(stateNames, name) }

// samples returns the size of a piece of sound: the chunk of a voice activity detector, or a second.
func (g guesser) samples() Size {
	source := ""
	if g.rateName != "" {
		source = fmt.Sprintf(", as %s of the file says", g.rateName)
	}
	if g.hears && g.detects {
		n := int64(float64(g.rate) / chunksPerSecond)
		return Size{n, fmt.Sprintf("a chunk of %d samples, usual for voice activity at %d Hz%s", n, g.rate, source)}
	}
	return Size{g.rate, fmt.Sprintf("one second of sound at %d Hz%s", g.rate, source)}
}

// isFrames reports whether a dimension counts frames of features.
func isFrames(v onnx.Value, symbol string) bool {
	return v.Type.IsFloat() && (has(symbol, "feats") || symbol == "t" || isFeatures(v) && !has(symbol, "seq"))
}

// isFeatures reports whether an input has frames of sound's features: the name tells, and one
// dimension is the fixed number of features.
func isFeatures(v onnx.Value) bool {
	isCount := func(d onnx.Dim) bool { return d.Size >= fewestFeatures }
	return v.Type.IsFloat() && len(v.Shape) >= 2 && slices.ContainsFunc(v.Shape, isCount) &&
		has(strings.ToLower(v.Name), "mel", "bank", "feat", "spec", "mfcc", "speech")
}

// usualSide returns the side of images by the model's metadata, or ImageNet's.
func (g guesser) usualSide() (side int64, why string) {
	if g.side > 0 {
		return g.side, fmt.Sprintf("sides of %d pixels, as the file's metadata says", g.side)
	}
	return exampleSide, fmt.Sprintf("sides of %d pixels, as images of ImageNet", exampleSide)
}

// sideOf returns the size for an image's open sides, and 0 if the input does not look like an
// image. i is the dimension. An image has a batch dimension, one, three or four channels before or
// after two sides, and a data type for pixels.
func (g guesser) sideOf(v onnx.Value, i int) (side int64, why string) {
	const rank = 4
	if len(v.Shape) != rank || !v.Type.IsFloat() && v.Type != onnx.Uint8 || strings.Contains(strings.ToLower(v.Name), "mask") {
		return 0, ""
	}
	isChannels := func(d onnx.Dim) bool { return slices.Contains([]int64{1, 3, 4}, d.Size) }
	var pair []onnx.Dim
	isHeight := false
	switch {
	case isChannels(v.Shape[1]):
		pair, isHeight = v.Shape[2:], i == 2
	case isChannels(v.Shape[3]):
		pair, isHeight = v.Shape[1:3], i == 1
	default:
		return 0, ""
	}
	height := pair[0].Size
	if g.reads && height < 0 {
		height = exampleHeight
	}
	if height >= lowestLine && height <= highestLine {
		line := fmt.Sprintf("a line of text of %d × %d pixels", height, exampleLine)
		if isHeight {
			return height, line
		}
		return exampleLine, line
	}
	for _, d := range pair {
		if d.IsFixed() {
			return d.Size, fmt.Sprintf("a side of %d pixels, as the other one", d.Size)
		}
	}
	return g.usualSide()
}
