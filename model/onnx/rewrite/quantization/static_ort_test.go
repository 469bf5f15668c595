package quantization_test

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/orttest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/quantization"
	"tuner/model/onnx/rewrite/rewritetest"
	"tuner/model/precision/calibrate"
	"tuner/ort"
	"tuner/ort/sessionoption"
)

// calibrated returns the ranges of a model's values for some rows.
func calibrated(t *testing.T, m *onnx.Model, rows map[string]inputs.Tensor) map[string]quantization.Range {
	t.Helper()
	values := activations(t, m)
	exposed, err := rewrite.Expose(m, values)
	if err != nil {
		t.Fatal(err)
	}
	collector, err := calibrate.New(calibrate.MinMax)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]inputs.Tensor{}
	results := orttest.InferFloats(t, orttest.LoadOneThread(t, exposed), rows)
	for _, value := range values {
		seen[value] = orttest.FloatTensor(results[value], int64(len(results[value])))
		if in, ok := rows[value]; ok {
			seen[value] = in
		}
	}
	if err := collector.Add(seen); err != nil {
		t.Fatal(err)
	}
	return collector.Ranges()
}

// classifiers are the sample models for images, with the numbers of integer nodes that ONNX Runtime
// makes of each.
func classifiers() map[string]struct {
	model *onnx.Model
	want  map[string]int
} {
	return map[string]struct {
		model *onnx.Model
		want  map[string]int
	}{
		"cnn": {build.CNN(0), map[string]int{"QLinearConv": 3, "QLinearGlobalAveragePool": 1, "QGemm": 1}},
		// 1 + 4·2·2 + 3 shortcuts; 8 sums.
		"resnet": {build.ResNet(), map[string]int{"QLinearConv": 20, "QLinearAdd": 8, "QLinearGlobalAveragePool": 1, "QGemm": 1}},
		// 2 + 11 blocks of 3. The 4 stages repeat their block 1, 2, 2 and 1 times, and the first
		// one keeps its shape: 7 sums.
		"mobilenet": {build.MobileNet(), map[string]int{"QLinearConv": 35, "QLinearAdd": 7, "QLinearGlobalAveragePool": 1, "QGemm": 1}},
		"blocks": {blocks(), map[string]int{
			"QLinearConv": 11, "QLinearSigmoid": 2, "QLinearMul": 2, "QLinearLeakyRelu": 1, "QLinearAveragePool": 1,
			"QLinearGlobalAveragePool": 1, "QLinearConcat": 1, "MatMulIntegerToFloat": 1,
		}},
	}
}

// ONNX Runtime computes the image classifiers in integers from the input to the logits. One node
// quantizes the image, and no node decodes anything in between.
func TestONNXRuntimeFusesInt8Static(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	for name, c := range classifiers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, summary := int8Static(t, c.model, quantization.StaticOptions{Ranges: alike(t, c.model, -1, 1)})
			if len(summary.Kept) > 0 {
				t.Errorf("kept: %v", summary.Kept)
			}
			path := filepath.Join(t.TempDir(), "optimized.onnx")
			// warns that the file is for this machine only
			orttest.Load(t, q, ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}, OptimizedModelPath: path, LogSeverity: ort.LogError})
			optimized, err := onnx.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, op := range rewritetest.Operators(optimized) {
				switch op {
				// they move integers
				case "Transpose", "Flatten", "MaxPool", "NhwcMaxPool", "Resize", "Slice", "Squeeze", "Unsqueeze", "Reshape":
				default:
					got[op]++
				}
			}
			c.want["QuantizeLinear"] = 1
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("operators (-want +got):\n%s", diff)
			}
		})
	}
}

// agreement compares rows of logits. It returns the mean cosine, and the number of rows with the
// same largest logit.
func agreement(want, got []float32, rows int) (mean float64, same int) {
	classes := len(want) / rows
	for i := 0; i < len(want); i += classes {
		a, b := want[i:i+classes], got[i:i+classes]
		mean += orttest.Cosine(a, b) / float64(rows)
		if slices.Index(a, slices.Max(a)) == slices.Index(b, slices.Max(b)) {
			same++
		}
	}
	return mean, same
}

// The small classifier gives the same classes as in fp32, on other images than those of the
// calibration.
func TestInt8StaticOfCNN(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	const rows = 64
	m := build.CNN(0)
	o := quantization.StaticOptions{Ranges: calibrated(t, m, orttest.Random(t, m, rows, 1))}
	in := orttest.Random(t, m, rows, 2)
	want := orttest.InferFloats(t, orttest.LoadOneThread(t, m), in)["logits"]
	check := func(bits int, entries map[string]string) {
		t.Helper()
		o.Bits = bits
		q, _ := int8Static(t, m, o)
		s := orttest.Load(t, q, ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}, Entries: entries})
		if mean, same := agreement(want, orttest.InferFloats(t, s, in)["logits"], rows); !(mean >= 0.999) || same < rows-1 {
			t.Errorf("%d bits, %v: cosine %v, %d of %d rows agree", bits, entries, mean, same, rows)
		}
	}
	check(8, nil)
	check(7, nil)
	check(8, exactProducts)
}

// exactProducts are the settings with which weights of 8 bits have exact products on processors without VNNI too.
var exactProducts = map[string]string{"session.x64quantprecision": "1"}

// In deep random networks, every layer adds its rounding error, and no training reduced the effect
// of it. onnxruntime.quantization's quantize_static gives mean cosines of 0.993 and 0.947 for the
// same models.
func TestInt8StaticOfDeepNetworks(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	const rows = 8
	for name, least := range map[string]float64{"resnet": 0.98, "mobilenet": 0.9, "blocks": 0.98} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := classifiers()[name].model
			q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: calibrated(t, m, orttest.Random(t, m, rows, 1))})
			in := orttest.Random(t, m, rows, 2)
			converted := orttest.Load(t, q, ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}, Entries: exactProducts})
			if mean, _ := agreement(orttest.InferFloats(t, orttest.LoadOneThread(t, m), in)["logits"], orttest.InferFloats(t, converted, in)["logits"], rows); !(mean >= least) {
				t.Errorf("cosine %v, want %v", mean, least)
			}
		})
	}
}

// Every sample model with layers can be converted and run, and computes about the same.
func TestInt8StaticRuns(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	for _, name := range []string{"mlp", "bertsquad", "recommender", "lstm"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := rewritetest.Samples()[name]
			in := orttest.Random(t, m, 3, 1)
			q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: calibrated(t, m, in)})
			orttest.CheckAgreement(t, orttest.InferFloats(t, orttest.LoadOneThread(t, m), in), orttest.InferFloats(t, orttest.LoadOneThread(t, q), in), 0.99)
		})
	}
}

// ONNX Runtime's result equals the arithmetic to the last bit. The input's range gives the scale 1
// and the zero point 51. 0.5 is rounded to 0 and 1.5 to 2, and 300 is clipped to 204. The weights
// are those of TestInt8DynamicComputesExactly: (127, 1, 2, 4) with scale 1 and (-127, 0, 5, 7) with
// scale 2. The biases are 10 units of 1 and 5 of 2.
//
//	-51·127 + 204·1 + 0·2 + 2·4 + 10 = -6255
//	2·(51·127 + 204·0 + 0·5 + 2·7 + 5) = 12992
func TestInt8StaticComputesExactly(t *testing.T) {
	t.Parallel()
	g, x := graph()
	w := g.Floats("w", []float32{127, -254, 1, 0, 2.5, 10, 3.5, 14}, 4, 2)
	m := output(g, g.Node("Add", []string{g.Node("MatMul", []string{x, w}), g.Floats("b", []float32{10, 10}, 2)}))
	q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, -51, 204)})
	in := map[string]inputs.Tensor{"x": orttest.FloatTensor([]float32{-51, 300, 0.5, 1.5}, 1, 4)}
	for _, level := range []string{sessionoption.Disabled, "all"} {
		s := orttest.Load(t, q, ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1", sessionoption.GraphOptimization: level}})
		if diff := cmp.Diff([]float32{-6255, 12992}, orttest.InferFloats(t, s, in)["y"]); diff != "" {
			t.Errorf("optimization %s (-want +got):\n%s", level, diff)
		}
	}
}

// The same for a convolution with a quantized result: 127·x in steps of 127, without negative
// values.
func TestInt8StaticConvolvesExactly(t *testing.T) {
	t.Parallel()
	g, x := pixels()
	c := g.Node("Relu", []string{g.Node("Conv", []string{x, g.Floats("w", []float32{127}, 1, 1, 1, 1)})})
	m := output(g, c)
	q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: map[string]quantization.Range{
		"x": {Min: -51, Max: 204}, c: {Min: 0, Max: 255 * 127},
	}})
	in := map[string]inputs.Tensor{"x": orttest.FloatTensor([]float32{-51, 3, 200, 1.5}, 1, 1, 2, 2)}
	for _, level := range []string{sessionoption.Disabled, "all"} {
		s := orttest.Load(t, q, ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1", sessionoption.GraphOptimization: level}})
		if diff := cmp.Diff([]float32{0, 3 * 127, 200 * 127, 2 * 127}, orttest.InferFloats(t, s, in)["y"]); diff != "" {
			t.Errorf("optimization %s (-want +got):\n%s", level, diff)
		}
	}
}

// Folding normalisations and biases changes the result only by rounding of the last bits.
func TestInt8StaticKeepsWhatItFolds(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	m := build.CNN(0)
	in := orttest.Random(t, m, 4, 1)
	keep := []string{"node_Conv_0", "node_Conv_1", "node_Conv_2"}
	q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, -1e-30, 1e-30), Keep: keep})
	exact, err := rewrite.Expose(m, []string{"Flatten_0"}) // the input of the last layer, which is converted
	if err != nil {
		t.Fatal(err)
	}
	folded, err := rewrite.Expose(q, []string{"Flatten_0"})
	if err != nil {
		t.Fatal(err)
	}
	want, got := orttest.InferFloats(t, orttest.LoadOneThread(t, exact), in)["Flatten_0"], orttest.InferFloats(t, orttest.LoadOneThread(t, folded), in)["Flatten_0"]
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= 1e-5*math.Abs(float64(want[i]))+1e-6) {
			t.Fatalf("element %d: %v, want %v", i, got[i], want[i])
		}
	}
}

// The probe's error is checked for a layer with known numbers. The exact result is y =
// (-51·127+300+0.5·2.5+1.5·3.5+10, 51·254+0.5·10+1.5·14+10) = (-6160.5, 12990). In int8 it is
// (-6255, 12992), as in TestInt8StaticComputesExactly.
//
//	(94.5² + 2²) / (6160.5² + 12990²) = 8934.25 / 206691860.25
func TestInt8StaticSensitivityMeasures(t *testing.T) {
	t.Parallel()
	g, x := graph()
	w := g.Floats("w", []float32{127, -254, 1, 0, 2.5, 10, 3.5, 14}, 4, 2)
	m := output(g, g.Node("Add", []string{g.Node("MatMul", []string{x, w}), g.Floats("b", []float32{10, 10}, 2)}))
	probe, outputs, err := quantization.StaticSensitivity(m, quantization.StaticOptions{Ranges: alike(t, m, -51, 204)})
	if err != nil {
		t.Fatal(err)
	}
	got := orttest.InferFloats(t, orttest.LoadOneThread(t, probe), map[string]inputs.Tensor{"x": orttest.FloatTensor([]float32{-51, 300, 0.5, 1.5}, 1, 4)})
	if diff := cmp.Diff([]float32{-6160.5, 12990}, got["y"]); diff != "" {
		t.Errorf("the exact output (-want +got):\n%s", diff)
	}
	e := got[outputs["node_MatMul_0"]]
	if want := 8934.25 / 206691860.25; len(e) != 1 || math.Abs(float64(e[0])/want-1) > 1e-3 { // 32-bit arithmetic
		t.Errorf("error %v, want %v", e, want)
	}
}

// OpenVINO runs all of the result of quantization.Static, and computes about the same as the original model.
// Weights of 7 bits are exact on processors without VNNI too.
func TestOpenVINORunsInt8Static(t *testing.T) {
	t.Parallel()
	orttest.OpenVINO(t)
	for name, least := range map[string]float64{"cnn": 0.999, "mlp": 0.99, "resnet": 0.98, "mobilenet": 0.9} {
		t.Run(name, func(t *testing.T) {
			const rows = 4
			m := rewritetest.Samples()[name]
			q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: calibrated(t, m, orttest.Random(t, m, rows, 1)), Bits: 7})
			in := orttest.Random(t, m, rows, 2)
			s := orttest.Load(t, q, ort.SessionOptions{
				RecordAssignment: true, Providers: []ort.Provider{{Name: "openvino", Options: map[string]string{"num_of_threads": "1"}}},
			})
			assigned, err := s.Assignment()
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range assigned {
				if a.Provider != "openvino" && a.Nodes > 0 {
					t.Errorf("%s has the nodes %v", a.Provider, a.Ops)
				}
			}
			got := orttest.InferFloats(t, s, in)
			for output, want := range orttest.InferFloats(t, orttest.LoadOneThread(t, m), in) {
				if mean, _ := agreement(want, got[output], rows); !(mean >= least) {
					t.Errorf("%s: cosine %v, want %v", output, mean, least)
				}
			}
		})
	}
}

// blocks makes a network with every operator that computes in integers between layers: input
// FLOAT[batch, 4, 8, 8].
func blocks() *onnx.Model {
	g := build.NewGraph("blocks")
	x := g.Input("input", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4), onnx.Fixed(8), onnx.Fixed(8))
	layers := 0
	conv := func(x string, from, to int64) string {
		w := make([]float32, from*to)
		for i := range w {
			w[i] = float32(math.Sin(float64(7*i + layers))) // any weights of mixed sign
		}
		layers++
		return g.Node("Conv", []string{x, g.Floats("w"+string(rune('a'+layers)), w, to, from, 1, 1)})
	}
	gated := func(x string, by string) string { return g.Node("Mul", []string{x, g.Node("Sigmoid", []string{by})}) }
	x = conv(x, 4, 4)
	x = conv(gated(x, x), 4, 4)
	x = conv(g.Node("LeakyRelu", []string{x}, build.FloatAttribute("alpha", 0.1)), 4, 4)
	x = conv(g.Node("AveragePool", []string{x}, build.IntsAttribute("kernel_shape", 2, 2), build.IntsAttribute("strides", 2, 2)), 4, 4)
	squeezed := conv(g.Node("Relu", []string{conv(g.Node("GlobalAveragePool", []string{x}), 4, 2)}), 2, 4)
	x = conv(gated(x, squeezed), 4, 4)
	x = conv(g.Node("Concat", []string{x, conv(x, 4, 2)}, build.IntAttribute("axis", 1)), 6, 4)
	x = g.Node("Resize", []string{x, "", g.Floats("scales", []float32{1, 1, 2, 2}, 4)})
	x = conv(g.Node("MaxPool", []string{x}, build.IntsAttribute("kernel_shape", 2, 2)), 4, 4)
	x = g.Node("Transpose", []string{x}, build.IntsAttribute("perm", 0, 1, 3, 2))
	x = g.Node("Slice", []string{x, g.Int64s("from", []int64{0}, 1), g.Int64s("to", []int64{4}, 1), g.Int64s("axis", []int64{2}, 1)})
	x = conv(g.Node("Squeeze", []string{g.Node("Unsqueeze", []string{x, g.Int64s("last", []int64{4}, 1)}), g.Int64s("four", []int64{4}, 1)}), 4, 4)
	x = g.Node("Reshape", []string{x, g.Int64s("shape", []int64{0, 112}, 2)}) // 4 channels of 4 × 7
	w := make([]float32, 112*3)
	for i := range w {
		w[i] = float32(math.Cos(float64(3 * i)))
	}
	g.OutputAs("logits", g.Node("MatMul", []string{x, g.Floats("classifier", w, 112, 3)}), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(3))
	return g.Model()
}
