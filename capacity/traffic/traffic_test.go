package traffic

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func parsed(t *testing.T, text string) Traffic {
	t.Helper()
	traffic, err := Parse(strings.NewReader(text), 1)
	if err != nil {
		t.Fatal(err)
	}
	return traffic
}

// A row counts until the next one, and the last one as long as the row before it.
func TestRates(t *testing.T) {
	t.Parallel()
	// 100/s for 30 s, 40/s for 30 s, 0 for 30 s: two steps each
	got := parsed(t, "timestamp,rate\n0,100\n30,40\n60,0\n")
	want := []float64{1500, 1500, 600, 600, 0, 0}
	if len(got.Requests) != len(want) {
		t.Fatalf("%d steps, want %d", len(got.Requests), len(want))
	}
	for i, n := range got.Requests {
		if math.Abs(n-want[i]) > 5*math.Sqrt(want[i]) { // Poisson
			t.Errorf("step %d: %g requests, want about %g", i, n, want[i])
		}
	}
	if !got.IsDrawn || got.Length() != 90*time.Second {
		t.Errorf("%v, drawn %v", got.Length(), got.IsDrawn)
	}
}

// A step across a row has the mean of both, weighted by time.
func TestRatesWithinAStep(t *testing.T) {
	t.Parallel()
	r := sampled([]time.Duration{0, 20 * time.Second}, []float64{10, 40}, 40*time.Second)
	// step 1 is 15 s to 30 s: 5 s at 10/s and 10 s at 40/s
	if want := (5*10.0 + 10*40) / 15; len(r) != 2 || r[0] != 10 || math.Abs(r[1]-want) > 1e-9 {
		t.Errorf("%v, want 10 and %g", r, want)
	}
}

// Numbers of requests are rates over the time until the next row.
func TestRequestsUntilTheNextRow(t *testing.T) {
	t.Parallel()
	got := parsed(t, "timestamp,requests\n2026-01-05T00:00:00Z,6000\n2026-01-05T00:01:00Z,12000\n")
	if want := 18000.0; math.Abs(got.Total()-want) > 5*math.Sqrt(want) {
		t.Errorf("%g requests, want about %g", got.Total(), want)
	}
}

// A trace keeps its own counts.
func TestTrace(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("timestamp\n")
	for i := range 900 { // ten a second for 90 s
		fmt.Fprintf(&b, "%.1f\n", float64(i)/10)
	}
	got := parsed(t, b.String())
	if len(got.Requests) != 6 || got.IsDrawn || got.Dispersion != 1 {
		t.Fatalf("%d steps, drawn %v, dispersion %g", len(got.Requests), got.IsDrawn, got.Dispersion)
	}
	for i, n := range got.Requests {
		if n != 150 {
			t.Errorf("step %d: %g requests, want 150", i, n)
		}
	}
}

// Bursts of 30 in one second of three have a variance of 30² × 2/9 over a mean of 10, as a sample of 15.
func TestDispersionOfBursts(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("timestamp\n")
	for s := 0; s < 90; s += 3 {
		for i := range 30 {
			fmt.Fprintf(&b, "%.3f\n", float64(s)+float64(i)/1000)
		}
	}
	got := parsed(t, b.String())
	if want := 900.0 * 2 / 9 / 10 * 15 / 14; math.Abs(got.Dispersion/want-1) > 0.01 {
		t.Errorf("dispersion %g, want %g", got.Dispersion, want)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	got, err := Read("peak 400/s, office hours, weekends 50 %", 1)
	if err != nil {
		t.Fatal(err)
	}
	days := got.Days()
	if len(days) != 7 {
		t.Fatalf("%d days", len(days))
	}
	sum := func(day []float64) (n float64) {
		for _, x := range day {
			n += x
		}
		return n
	}
	if ratio := sum(days[6]) / sum(days[0]); math.Abs(ratio-0.5) > 0.01 {
		t.Errorf("Sunday has %.3f of Monday's requests, want 0.5", ratio)
	}
	// 400/s are 6000 in a step, and the highest of some hundred draws lies 3 to 5 deviations above
	if peak := got.Peak(); peak < 400 || peak > 430 {
		t.Errorf("peak %g/s", peak)
	}
	mean, err := Read("mean 50/s, evenings", 1)
	if err != nil || math.Abs(mean.Mean()-50) > 0.5 {
		t.Errorf("mean %g/s, %v", mean.Mean(), err)
	}
}

func TestCurve(t *testing.T) {
	t.Parallel()
	got, err := Read("{0h: 0, 12h: 100, 24h: 0}", 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Days()) != 7 || math.Abs(got.Mean()-50) > 0.5 {
		t.Errorf("%d days, mean %g/s, want 7 and 50", len(got.Days()), got.Mean())
	}
	noon := got.Requests[PerDay/2] / Step.Seconds()
	if math.Abs(noon-100) > 15 {
		t.Errorf("%g/s at noon, want about 100", noon)
	}
}

// The same seed draws the same requests.
func TestSeed(t *testing.T) {
	t.Parallel()
	a, _ := Read("mean 10/s", 1)
	b, _ := Read("mean 10/s", 1)
	c, _ := Read("mean 10/s", 2)
	if a.Total() != b.Total() || a.Total() == c.Total() {
		t.Errorf("%g, %g and %g requests", a.Total(), b.Total(), c.Total())
	}
}

// Each mistake names its file and row, and what is allowed.
func TestMistakes(t *testing.T) {
	t.Parallel()
	check := func(text string, want ...string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "traffic.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path, 1)
		if err == nil {
			t.Errorf("%q is read", text)
			return
		}
		for _, w := range append(want, path) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v; it lacks %q", text, err, w)
			}
		}
	}
	check("timestamp,rate\n0,1\n60,x\n", ":3:", `rate "x"`)
	check("timestamp,rate\n0,1\n60,-1\n", ":3:", `rate "-1"`)
	check("timestamp,rate\n0,1\n60,1\n30,1\n", ":4:", "after that of the row above")
	check("timestamp,rate\nnoon,1\n60,1\n", ":2:", `"noon"`)
	check("timestamp,rate\n0,1\n", "two at least")
	check("timestamp,rate\n0,1\n10,1\n", "1m0s", "92 days")
	check("timestamp,rate\n0,1\n86400000,1\n", ":3:", "92 days")
	check("timestamp,rate\n0,0\n60,0\n", "no requests")
	check("time,load\n0,1\n", "timestamp")
	check("", "empty")
	for _, text := range []string{"peak", "peak 0/s", "peak 10/s, lunch", "peak 10/s, peak 20/s", "office hours", "{0h: 1}", "{0h: 1, 24h: many}", "nothing.csv"} {
		if _, err := Read(text, 1); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// A file of strangers is read or refused, within the bounds.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"timestamp,rate\n0,100\n30,40\n60,0\n", "timestamp,requests\n0,6000\n60,1\n", "timestamp\n0\n1\n61.5\n", "1000\n2000\n99000000\n",
		"rate,timestamp\n1e7,0\n1,7776000\n", "timestamp,rate\n1e300,1\n", "timestamp,rate\n0,NaN\n60,1\n", "\ufefftimestamp,rate\n0,1\n60,2\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Parse(strings.NewReader(string(text)), 1)
		if err != nil {
			return
		}
		if got.Length() > Longest || len(got.Requests) == 0 || !(got.Dispersion >= 1) {
			t.Fatalf("%v with dispersion %g", got.Length(), got.Dispersion)
		}
		for _, n := range got.Requests {
			if !(n >= 0) || math.IsInf(n, 0) {
				t.Fatalf("%g requests", n)
			}
		}
	})
}
