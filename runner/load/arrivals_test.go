package load

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/internal/alloctest"
)

// take returns the first n instants.
func take(a Arrivals, n int) []time.Duration {
	instants := make([]time.Duration, n)
	for i := range instants {
		instants[i] = a.Next()
	}
	return instants
}

func TestConstantArrivalsDoNotDrift(t *testing.T) {
	t.Parallel()
	a, err := Constant(3)
	if err != nil {
		t.Fatal(err)
	}
	// A third of a second is not a whole number of nanoseconds. Still, 3 million of them are
	// exactly a million seconds.
	if last := take(a, 3_000_000)[2_999_999]; last != 1_000_000*time.Second {
		t.Errorf("the last of 3 million is due at %v", last)
	}
}

func TestPoissonArrivals(t *testing.T) {
	t.Parallel()
	const n, rate = 100_000, 250.0
	a, err := Poisson(rate, 7)
	if err != nil {
		t.Fatal(err)
	}
	instants := take(a, n)
	again, _ := Poisson(rate, 7)
	other, _ := Poisson(rate, 8)
	if !slices.Equal(take(again, 100), instants[:100]) || slices.Equal(take(other, 100), instants[:100]) {
		t.Error("the schedule is not a function of the seed")
	}
	var sum, squares, longer float64
	for i := 1; i < n; i++ {
		d := (instants[i] - instants[i-1]).Seconds() * rate
		sum, squares = sum+d, squares+d*d
		if d > 2 {
			longer++
		}
	}
	mean := sum / (n - 1)
	variance := squares/(n-1) - mean*mean
	// Exponential distribution: the mean is 1 with standard error 1/√n = 0.3 %, and the variance is
	// 1 with √8/√n = 0.9 %. A share of e⁻² is longer than 2 means.
	if math.Abs(mean-1) > 0.015 || math.Abs(variance-1) > 0.045 || math.Abs(longer/(n-1)-math.Exp(-2)) > 0.006 {
		t.Errorf("distances have mean %.3f and variance %.3f, %.4f are longer than 2", mean, variance, longer/(n-1))
	}
}

func TestIntervalsRepeat(t *testing.T) {
	t.Parallel()
	a, err := Intervals([]time.Duration{10, 0, 5})
	if err != nil {
		t.Fatal(err)
	}
	if got := take(a, 7); !slices.Equal(got, []time.Duration{10, 10, 15, 25, 25, 30, 40}) {
		t.Errorf("instants %v", got)
	}
}

func TestSenselessArrivalsAreRefused(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1), 1e-9, 1e9} {
		if _, err := Constant(rate); err == nil {
			t.Errorf("constant arrivals of %g/s", rate)
		}
		if _, err := Poisson(rate, 1); err == nil {
			t.Errorf("Poisson arrivals of %g/s", rate)
		}
	}
	for _, list := range [][]time.Duration{nil, {0, 0}, {5, -1}, {math.MaxInt64, math.MaxInt64}} {
		if _, err := Intervals(list); err == nil {
			t.Errorf("intervals %v", list)
		}
	}
}

func TestParseIntervals(t *testing.T) {
	t.Parallel()
	list, err := ParseIntervals(strings.NewReader("100\r\n\n 2000 \n0"))
	if want := []time.Duration{100 * time.Microsecond, 2 * time.Millisecond, 0}; err != nil || !slices.Equal(list, want) {
		t.Errorf("%v, %v, want %v", list, err, want)
	}
	for text, want := range map[string]string{
		"":                    "no intervals",
		"1\n2.5\n":            `line 2: "2.5"`,
		"1\n\n-3":             `line 3: "-3"`,
		"1e3":                 "line 1",
		"9999999999999999999": "line 1",
		"86400000001":         "line 1",
	} {
		if list, err := ParseIntervals(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, %v, want %q", text, list, err, want)
		}
	}
}

func FuzzParseIntervals(f *testing.F) {
	for _, text := range []string{"100\n200\n", "", "0", "-1", "a\n", "86400000000\n86400000000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer alloctest.Bound(t, len(text))()
		list, err := ParseIntervals(strings.NewReader(text))
		if err != nil {
			return
		}
		a, err := Intervals(list)
		if err != nil {
			return // all intervals are 0
		}
		var last time.Duration
		for _, at := range take(a, 10) {
			if at < last {
				t.Fatalf("%v comes after %v", at, last)
			}
			last = at
		}
	})
}
