package arrivals

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// take returns the first n instants.
func take(s Schedule, n int) []time.Duration {
	instants := make([]time.Duration, n)
	for i := range instants {
		instants[i] = s.Next()
	}
	return instants
}

func schedule(t *testing.T, p Pattern, rate float64) Schedule {
	t.Helper()
	s, err := p.Schedule(rate, 7)
	if err != nil {
		t.Fatalf("%s at %g/s: %v", p, rate, err)
	}
	return s
}

func TestConstantArrivalsDoNotDrift(t *testing.T) {
	t.Parallel()
	// A third of a second is not a whole number of nanoseconds. Still, 3 million of them are
	// exactly a million seconds.
	if last := take(schedule(t, Pattern{Kind: ConstantKind}, 3), 3_000_000)[2_999_999]; last != 1_000_000*time.Second {
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
	again, _ := Pattern{}.Schedule(rate, 7)
	other, _ := Poisson(rate, 8)
	if !slices.Equal(take(again, 100), instants[:100]) || slices.Equal(take(other, 100), instants[:100]) {
		t.Error("the schedule is not a function of the seed")
	}
	mean, variance, longer := distances(instants, rate)
	// Exponential distribution: the mean is 1 with standard error 1/√n = 0.3 %, and the variance is
	// 1 with √8/√n = 0.9 %. A share of e⁻² is longer than 2 means.
	if math.Abs(mean-1) > 0.015 || math.Abs(variance-1) > 0.045 || math.Abs(longer-math.Exp(-2)) > 0.006 {
		t.Errorf("distances have mean %.3f and variance %.3f, %.4f are longer than 2", mean, variance, longer)
	}
}

// distances returns mean and variance of the distances, in mean distances, and the share that is
// longer than 2.
func distances(instants []time.Duration, rate float64) (mean, variance, longer float64) {
	var sum, squares float64
	n := float64(len(instants) - 1)
	for i := 1; i < len(instants); i++ {
		d := (instants[i] - instants[i-1]).Seconds() * rate
		sum, squares = sum+d, squares+d*d
		if d > 2 {
			longer++
		}
	}
	mean = sum / n
	return mean, squares/n - mean*mean, longer / n
}

// Gamma distances have the asked coefficient of variation. With cv 1 they are exponential.
func TestGammaArrivals(t *testing.T) {
	t.Parallel()
	const n, rate = 400_000, 250.0
	for _, cv := range []float64{0.5, 1, 3} {
		mean, variance, longer := distances(take(schedule(t, Pattern{Kind: GammaKind, CV: cv}, rate), n), rate)
		// The standard error of the mean is cv/√n. That of the variance is about cv²·√(2+6cv²)/√n:
		// the kurtosis of a gamma distribution is 3+6cv².
		if math.Abs(mean-1) > 5*cv/math.Sqrt(n) || math.Abs(variance/(cv*cv)-1) > 5*math.Sqrt((2+6*cv*cv)/n) {
			t.Errorf("cv %g: distances have mean %.4f and variance %.4f", cv, mean, variance)
		}
		if cv == 1 && math.Abs(longer-math.Exp(-2)) > 0.003 {
			t.Errorf("cv 1: %.4f are longer than 2 means, want e⁻²", longer)
		}
	}
}

// A second on and three off at 100/s: 400/s in the first second of each four, nothing later.
func TestOnOffArrivals(t *testing.T) {
	t.Parallel()
	p := Pattern{Kind: OnOffKind, On: time.Second, Off: 3 * time.Second}
	const n = 100_000
	instants := take(schedule(t, p, 100), n)
	for _, at := range instants {
		if phase := at % (4 * time.Second); phase > time.Second {
			t.Fatalf("a request is due at %v, in the off time", at)
		}
	}
	if last := instants[n-1].Seconds(); math.Abs(last/1000-1) > 5/math.Sqrt(n) {
		t.Errorf("%d requests take %v s, want about 1000", n, last)
	}
	if p.Period(100) != 4*time.Second || p.Whole(5*time.Second, 100) != 8*time.Second || p.Whole(4*time.Second, 100) != 4*time.Second {
		t.Errorf("the period is %v; 5 s become %v", p.Period(100), p.Whole(5*time.Second, 100))
	}
}

// From 0 to 2 in a second and back to 0 in another: the rate at t is proportional to t, so a quarter
// of a period's first half arrives in the first half second.
func TestCurveArrivals(t *testing.T) {
	t.Parallel()
	p := Pattern{Kind: CurveKind, Curve: []Point{{0, 0}, {time.Second, 2}, {2 * time.Second, 0}}}
	const n = 200_000
	instants := take(schedule(t, p, 1000), n)
	var early, first float64
	for i, at := range instants {
		if i > 0 && at < instants[i-1] {
			t.Fatalf("%v comes after %v", at, instants[i-1])
		}
		switch phase := at % (2 * time.Second); {
		case phase < 500*time.Millisecond:
			early, first = early+1, first+1
		case phase < time.Second:
			first++
		}
	}
	if math.Abs(first/n-0.5) > 0.006 || math.Abs(early/first-0.25) > 0.006 {
		t.Errorf("%.3f arrive in the first second, %.3f of them in its first half; want 0.5 and 0.25", first/n, early/first)
	}
	if last := instants[n-1].Seconds(); math.Abs(last/200-1) > 5/math.Sqrt(n) {
		t.Errorf("%d requests take %v s, want about 200", n, last)
	}
}

// Instants 0, 1 and 4 s: the mean distance is 2 s, with which the trace follows itself. At twice the
// rate all distances are halved.
func TestTraceIsReplayed(t *testing.T) {
	t.Parallel()
	trace, err := NewTrace([]time.Duration{5 * time.Second, 6 * time.Second, 9 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	p := Pattern{Kind: TraceKind, Trace: &trace}
	s := func(list ...float64) (all []time.Duration) {
		for _, x := range list {
			all = append(all, time.Duration(x*float64(time.Second)))
		}
		return all
	}
	if trace.Rate() != 0.5 || p.Period(0.5) != 6*time.Second || p.Period(1) != 3*time.Second {
		t.Errorf("the rate is %v, the period %v, and %v at twice the rate", trace.Rate(), p.Period(0.5), p.Period(1))
	}
	if got := take(schedule(t, p, 0.5), 5); !slices.Equal(got, s(2, 3, 6, 8, 9)) {
		t.Errorf("at its own speed: %v", got)
	}
	if got := take(schedule(t, p, 1), 5); !slices.Equal(got, s(1, 1.5, 3, 4, 4.5)) {
		t.Errorf("at twice the rate: %v", got)
	}
}

func TestSampleOfATrace(t *testing.T) {
	t.Parallel()
	instants := make([]time.Duration, 1000)
	for i := range instants {
		instants[i] = time.Duration(i*i) * time.Millisecond
	}
	trace, err := NewTrace(instants)
	if err != nil {
		t.Fatal(err)
	}
	if whole := trace.Sample(1000); len(whole.Gaps) != 1000 {
		t.Errorf("a short trace is cut to %d", len(whole.Gaps))
	}
	sample := trace.Sample(100)
	// Ten parts of ten: the first gap is the mean of 999, and the last one is from 998² to 999² ms.
	if len(sample.Gaps) != 100 || sample.Gaps[0] != trace.Gaps[0] || sample.Gaps[99] != (999*999-998*998)*time.Millisecond || sample.Rate() != trace.Rate() {
		t.Errorf("the sample has %d gaps from %v to %v, and the rate %v", len(sample.Gaps), sample.Gaps[0], sample.Gaps[len(sample.Gaps)-1], sample.Rate())
	}
}

func TestIntervalsRepeat(t *testing.T) {
	t.Parallel()
	trace, err := TraceOf([]time.Duration{10, 0, 5})
	if err != nil {
		t.Fatal(err)
	}
	if got := take(&replay{gaps: trace.Gaps, scale: 1}, 7); !slices.Equal(got, []time.Duration{10, 10, 15, 25, 25, 30, 40}) {
		t.Errorf("instants %v", got)
	}
}

func TestSenselessArrivalsAreRefused(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1), 1e-9, 1e9} {
		for _, kind := range []Kind{ConstantKind, PoissonKind} {
			if _, err := (Pattern{Kind: kind}).Schedule(rate, 1); err == nil {
				t.Errorf("%s arrivals of %g/s", kind, rate)
			}
		}
	}
	for _, list := range [][]time.Duration{nil, {0, 0}, {5, -1}, {math.MaxInt64, math.MaxInt64}} {
		if _, err := TraceOf(list); err == nil {
			t.Errorf("intervals %v", list)
		}
	}
	second := time.Second
	for want, p := range map[string]Pattern{
		"coefficient of variation 0 must":   {Kind: GammaKind},
		"coefficient of variation NaN must": {Kind: GammaKind, CV: math.NaN()},
		"the times 0s and 1s":               {Kind: OnOffKind, Off: second},
		"needs 2 to 10000 points":           {Kind: CurveKind},
		"must begin at 0s":                  {Kind: CurveKind, Curve: []Point{{second, 1}, {2 * second, 1}}},
		"must follow 1s":                    {Kind: CurveKind, Curve: []Point{{0, 1}, {second, 1}, {second, 2}}},
		"no factor above 0":                 {Kind: CurveKind, Curve: []Point{{0, 0}, {second, 0}}},
		"the factor NaN at 1s":              {Kind: CurveKind, Curve: []Point{{0, 1}, {second, math.NaN()}}},
		"not read":                          {Kind: TraceKind},
		"is not a pattern":                  {Kind: "bursty"},
	} {
		if _, err := p.Schedule(1, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v gives %v, want %q", p, err, want)
		}
	}
}
