package testserver

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestStall(t *testing.T) {
	t.Parallel()
	s := Stall{Every: 10, For: 3} // pauses in [10, 13), [20, 23), …
	for _, test := range []struct{ begin, work, want time.Duration }{
		{0, 5, 5},   // the first period has no stall
		{0, 10, 10}, // done when it begins
		{8, 4, 15},  // 2 before, 2 after it
		{11, 1, 14}, // begins inside
		{12, 0, 13}, // even zero work waits
		{8, 12, 26}, // 2, then 7 of [13, 20), then 3 of [23, …)
	} {
		if got := s.end(test.begin, test.work); got != test.want {
			t.Errorf("work of %d from %d ends at %d, expected %d", test.work, test.begin, got, test.want)
		}
	}
	if got := (Stall{}).end(7, 5); got != 12 {
		t.Errorf("without a stall it ends at %d, expected 12", got)
	}
}

// Means of 10⁵ draws with a fixed seed are within four standard errors.
func TestLaws(t *testing.T) {
	t.Parallel()
	const n = 100_000
	check := func(text string, mean, deviation float64) {
		t.Helper()
		law, err := ParseLaw(text)
		if err != nil {
			t.Fatal(err)
		}
		r, sum := rand.New(rand.NewPCG(1, 2)), 0.0
		for range n {
			sum += law(r).Seconds()
		}
		if got := sum / n; math.Abs(got-mean) > 4*deviation/math.Sqrt(n)+1e-12 {
			t.Errorf("%s has the mean %v, expected %v", text, got, mean)
		}
	}
	check("deterministic:5ms", 0.005, 0)
	check("exponential:20ms", 0.020, 0.020)
	// 0.98 of 1 ms and 0.02 of 20 ms give the mean 1.38 ms, and the variance 0.98·1 + 0.02·400 −
	// 1.38² = 7.0756 ms²
	check("bimodal:1ms:0.02:20", 0.00138, 0.00266)
}

func TestUnknownLaws(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "gamma:1ms", "deterministic", "deterministic:1ms:2", "bimodal:1ms:x:20", "bimodal:1ms:0.1"} {
		if _, err := ParseLaw(text); err == nil || !strings.Contains(err.Error(), "cannot read the law") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}
