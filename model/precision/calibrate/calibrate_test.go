package calibrate_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite/quantization"
	"tuner/model/precision/calibrate"
)

func tensor(t onnx.DataType, values ...float64) inputs.Tensor {
	out := inputs.Tensor{Type: t, Shape: []int64{int64(len(values))}}
	for _, v := range values {
		out.Data = onnx.AppendFloat(out.Data, t, v)
	}
	return out
}

// rangeOf returns the range of one value from batches.
func rangeOf(t *testing.T, method string, batches ...[]float64) quantization.Range {
	t.Helper()
	c, err := calibrate.New(method)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := c.Add(map[string]inputs.Tensor{"x": tensor(onnx.Float, b...)}); err != nil {
			t.Fatal(err)
		}
	}
	return c.Ranges()["x"]
}

// uniform returns n numbers in the middles of n equal parts of an interval. Their quantile q is lo
// + q·(hi-lo), within 1/n.
func uniform(n int, lo, hi float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = lo + (hi-lo)*(float64(i)+0.5)/float64(n)
	}
	return values
}

// near reports whether both ends are within a tolerance.
func near(got quantization.Range, least, most, tolerance float64) bool {
	return math.Abs(float64(got.Min)-least) <= tolerance && math.Abs(float64(got.Max)-most) <= tolerance
}

func TestMinMax(t *testing.T) {
	t.Parallel()
	check := func(want quantization.Range, batches ...[]float64) {
		t.Helper()
		for _, method := range []string{calibrate.MinMax, ""} { // the default
			if diff := cmp.Diff(want, rangeOf(t, method, batches...)); diff != "" {
				t.Errorf("%q, %v (-want +got):\n%s", method, batches, diff)
			}
		}
	}
	check(quantization.Range{Min: -2, Max: 3}, []float64{1, -2}, []float64{3})
	check(quantization.Range{Min: 5, Max: 6}, []float64{5, 6}) // zero does not occur; the rewrite ensures that it is exact
	check(quantization.Range{}, []float64{0, 0})
	check(quantization.Range{Min: -1e-40, Max: math.MaxFloat32}, []float64{math.MaxFloat32}, []float64{-1e-40})
}

// From 10^6 numbers, 10^6·0.000005 = 5 may be cut off at each end. A bin has thousands of the
// uniformly distributed numbers, so none of these bins is cut. One to five outliers are.
func TestPercentileCutsOutliers(t *testing.T) {
	t.Parallel()
	const n = 1_000_000
	bulk := uniform(n, -1, 3)
	outliers := []float64{-100, 64, 90, 100}
	got := rangeOf(t, calibrate.Percentile, bulk, outliers)
	// With ±128 the bins are 256/16384 = 1/64 wide, and -1 and 3 are on their edges.
	if !near(got, -1, 3, 1./64) {
		t.Errorf("range %v, want -1 to 3", got)
	}
	if diff := cmp.Diff(quantization.Range{Min: -100, Max: 100}, rangeOf(t, calibrate.MinMax, bulk, outliers)); diff != "" {
		t.Errorf("minmax (-want +got):\n%s", diff)
	}
	six := []float64{50, 64, 70, 80, 90, 100} // one too many: the smallest of them stays
	if got := rangeOf(t, calibrate.Percentile, bulk, six); !near(got, -1, 50, 1./64) {
		t.Errorf("range %v, want -1 to 50", got)
	}
}

// The 99.9995 % quantile of the standard normal distribution is 4.4172 (R: qnorm(1 - 5e-6)).
func TestPercentileOfNormal(t *testing.T) {
	t.Parallel()
	const n, quantile = 1_000_000, 4.4172
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, n)
	for i := range values {
		values[i] = r.NormFloat64()
	}
	got := rangeOf(t, calibrate.Percentile, values)
	// The deviation of a quantile is sqrt(p(1-p)/n)/density, here sqrt(5e-6/1e6)/2.3e-5 = 0.097.
	if !near(got, -quantile, quantile, 4*0.097) {
		t.Errorf("range %v, want ±%v", got, quantile)
	}
	if all := rangeOf(t, calibrate.MinMax, values); all.Max <= got.Max || all.Min >= got.Min {
		t.Errorf("minmax %v is not wider than %v", all, got)
	}
}

// Zeros count like other numbers: 10^6 of them make 5 others at each end outliers.
func TestPercentileCountsZeros(t *testing.T) {
	t.Parallel()
	got := rangeOf(t, calibrate.Percentile, make([]float64, 1_000_000), []float64{1, 2, 3, 4, 5})
	if !near(got, 0, 0, 8./8192) { // one bin of a histogram up to ±8
		t.Errorf("range %v, want 0 to 0", got)
	}
}

// Numbers that fill all bins equally lose no information if bins are merged into levels. They lose
// everything that is cut off.
func TestEntropyKeepsUniform(t *testing.T) {
	t.Parallel()
	const n = 1 << 16
	if got := rangeOf(t, calibrate.Entropy, uniform(n, -1, 1)); !near(got, -1, 1, 1./n) {
		t.Errorf("range of -1 to 1: %v", got)
	}
	if got := rangeOf(t, calibrate.Entropy, make([]float64, 10*n), uniform(n, 0, 1)); !near(got, 0, 1, 1./n) {
		t.Errorf("range of 0 to 1 and many zeros: %v", got)
	}
	if got := rangeOf(t, calibrate.Entropy, []float64{0, 0}); got != (quantization.Range{}) {
		t.Errorf("range of zeros: %v", got)
	}
	if got := rangeOf(t, calibrate.Entropy, []float64{-3, 5}); !near(got, -3, 5, 0) {
		t.Errorf("range of two numbers: %v", got)
	}
}

// The quantile q of the exponential distribution is -ln(1-q), so 2^16 such numbers end at 11.8.
// With the outliers, the bins reach to 128 and are 1/16 wide.
//
// Cutting at 8, bins and levels are equal, and e^-8 of the numbers count at a bin that represents a
// 17th of them. They lose e^-8·ln(17) = 0.00095. Cutting at 16, each level has two bins, which
// differ by the factor e^(1/16), and they lose (1/16)²/8 = 0.0005. Cutting at 10 loses about
// e^-10·ln(17) and a quarter of that: 0.00025. At 32, levels of four bins lose five times as much
// as those of two. So the best cut is between 8 and 16, and both signs have the same cut.
func TestEntropyCutsOutliers(t *testing.T) {
	t.Parallel()
	values := uniform(1<<16, 0, 1)
	for i, q := range values {
		values[i] = -math.Log1p(-q)
	}
	check := func(sign float64, outliers ...float64) quantization.Range {
		t.Helper()
		signed := make([]float64, len(values))
		for i, v := range values {
			signed[i] = sign * v
		}
		return rangeOf(t, calibrate.Entropy, signed, outliers)
	}
	if got := check(1, 100, 127); !(got.Max >= 8 && got.Max <= 16) || got.Min <= 0 {
		t.Errorf("range of positive numbers: %v", got)
	}
	if got := check(-1, -100, 127); !(got.Min <= -8 && got.Min >= -16) || got.Max != -got.Min {
		t.Errorf("range of negative numbers with an outlier at each end: %v", got)
	}
}

// The order of the batches changes nothing, both if the histogram must grow and if not.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var batches [][]float64
	for i := range 12 {
		values := make([]float64, 1000)
		for j := range values {
			values[j] = math.Ldexp(r.NormFloat64(), i-6) // spread over many magnitudes
		}
		batches = append(batches, values)
	}
	reversed := make([][]float64, len(batches))
	for i := range batches {
		reversed[len(batches)-1-i] = batches[i]
	}
	for _, method := range calibrate.Methods() {
		if diff := cmp.Diff(rangeOf(t, method, batches...), rangeOf(t, method, reversed...)); diff != "" {
			t.Errorf("%s (-forward +backward):\n%s", method, diff)
		}
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	c, err := calibrate.New("")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]onnx.DataType{"half": onnx.Float16, "brain": onnx.BFloat16, "single": onnx.Float, "double": onnx.Double}
	batch := map[string]inputs.Tensor{"empty": tensor(onnx.Float)}
	want := map[string]quantization.Range{} // an empty value has no range
	for name, typ := range types {
		batch[name] = tensor(typ, -0.5, 2)
		want[name] = quantization.Range{Min: -0.5, Max: 2}
	}
	if err := c.Add(batch); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, c.Ranges()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	if _, err := calibrate.New("magic"); err == nil || !strings.Contains(err.Error(), `"magic"`) || !strings.Contains(err.Error(), `"entropy"`) {
		t.Errorf("unknown method: %v", err)
	}
	for _, tt := range []struct {
		tensor inputs.Tensor
		want   string
	}{
		{tensor(onnx.Float, 1, math.NaN()), `the value "x": it holds NaN (element 1 of shape [2])`},
		{tensor(onnx.Float16, math.Inf(-1)), `the value "x": it holds -Inf (element 0 of shape [1])`},
		{tensor(onnx.Double, 1e39), `the value "x": it holds 1e+39`},
		{inputs.Tensor{Type: onnx.Int64}, `the value "x": it is INT64`},
	} {
		c, err := calibrate.New(calibrate.Percentile)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Add(map[string]inputs.Tensor{"x": tt.tensor}); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "fp32") {
			t.Errorf("error %v, want %q, and no remedy that there is not", err, tt.want)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	t := tensor(onnx.Float, uniform(1<<16, -1, 3)...)
	c, err := calibrate.New("")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(t.Data)))
	for b.Loop() {
		if err := c.Add(map[string]inputs.Tensor{"x": t}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEntropy(b *testing.B) {
	c, err := calibrate.New(calibrate.Entropy)
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Add(map[string]inputs.Tensor{"x": tensor(onnx.Float, uniform(1<<16, -1, 1)...)}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c.Ranges()
	}
}
