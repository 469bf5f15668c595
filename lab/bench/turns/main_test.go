package main

import (
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tuner/lab/program"
	"tuner/measure"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	check := func(args, want string) {
		t.Helper()
		if _, err := program.Parse(define, append([]string{"-tuner", "main.go"}, strings.Fields(args)...), io.Discard); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	check("-ort-library a.so", "")
	check("-ort-library=", "no ONNX Runtime library")
	check("-ort-library a.so -concurrency 0", "above 0")
	check("-ort-library a.so -rounds 5", "no longer than a block")
	check("-ort-library a.so -model", "flag needs an argument")
}

// A missing model is reported before any launch.
func TestModelThatIsNotThere(t *testing.T) {
	t.Parallel()
	o := options{model: "none.onnx", library: "a.so", concurrency: 8, window: time.Second}
	if err := run(t.Context(), o, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "none.onnx") {
		t.Errorf("%v", err)
	}
}

// played returns a block of two engines with 4 requests in flight. By Little's law its windows
// complete 4 divided by latencies around 40 ms.
func played(random *rand.Rand, rounds int, noise, difference float64) block {
	window := func(shift float64) measure.Window {
		latency := time.Duration(40e6 * math.Exp(noise*random.NormFloat64()-shift))
		latencies := []time.Duration{latency, latency}
		return measure.Window{Duration: time.Second, Requests: 2, Inferences: 2, InFlight: 4, Turn: true,
			Sub: []measure.SubWindow{{Requests: 2, Latency: measure.NewHistogram(latencies), Sum: 2 * latency}}}
	}
	var b block
	for range rounds {
		b.a.Windows, b.b.Windows = append(b.a.Windows, window(difference)), append(b.b.Windows, window(0))
	}
	return b
}

func TestFigures(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 3))
	blocks := []block{played(random, 400, 0.1, 0.05), played(random, 400, 0.1, 0.05)}
	f := newFigures(blocks)
	// Differences of two windows have a deviation of √2 · 10 %, so the mean of 800 has 0.5 %.
	if mean := deviation(f.little); len(f.little) != 800 || math.Abs(mean-0.141) > 0.01 || math.Abs(scatter(blocks)-0.1) > 0.01 {
		t.Errorf("%d rounds that scatter by %.3f", len(f.little), mean)
	}
	if text := report(options{meetings: 50, meeting: 12}, blocks, 1600*time.Second); !strings.Contains(text, "+5.03 ± 0.51 %") || !strings.Contains(text, "windows are 100 % of the time") {
		t.Error(text)
	}
}

func TestFalseFindings(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 4))
	var alike, apart []float64
	for range 5000 {
		x := random.NormFloat64()
		alike, apart = append(alike, x), append(apart, x+5)
	}
	if n := falseFindings([][]float64{alike}, 2000, 12); n < 60 || n > 150 {
		t.Errorf("%d of 2000 meetings of equals find a difference, want about 5 %%", n)
	}
	if n := falseFindings([][]float64{apart, alike[:5]}, 100, 12); n != 100 {
		t.Errorf("%d of 100 meetings find what is there", n)
	}
	if n := falseFindings([][]float64{alike[:5]}, 100, 12); n != 0 {
		t.Errorf("%d meetings of blocks that are too short", n)
	}
}
