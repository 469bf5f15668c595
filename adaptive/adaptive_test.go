package adaptive

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// latencies makes intervals of a relative width around values.
func latencies(width float64, values ...float64) (list []Latency) {
	for _, v := range values {
		list = append(list, Latency{v, v / (1 + width), v * (1 + width)})
	}
	return list
}

// table has a configuration that is fast at low rates, and one that is fast at high rates. At 200/s both
// take 20 ms.
func table(width float64) *Table {
	return &Table{
		Format: Format, Model: "m", Pays: true, Quantile: 0.99, Static: "large", Rates: []float64{100, 200, 300, 400},
		Configurations: []Configuration{
			{Name: "small", Config: []byte("{}"), Latencies: latencies(width, 0.010, 0.020, 0.060)},
			{Name: "large", Config: []byte("{}"), Latencies: latencies(width, 0.018, 0.020, 0.022, 0.025)},
		},
	}
}

func index(t *Table, name string) int { return t.index(name) }

// A configuration is better only where its interval lies below the other's, at all rates.
func TestBetter(t *testing.T) {
	t.Parallel()
	check := func(width float64, from string, low, high float64, want string) {
		t.Helper()
		x := table(width)
		if got := x.Configurations[x.Better(index(x, from), low, high, nil)].Name; got != want {
			t.Errorf("width %g, %s at %g to %g: %s, want %s", width, from, low, high, got, want)
		}
	}
	check(0.1, "large", 50, 100, "small")
	check(0.5, "large", 50, 100, "large") // 15 ms is above 12 ms
	check(0.1, "large", 50, 199, "large") // the rates reach to where both are equal
	check(0.1, "small", 290, 300, "large")
	check(0.1, "small", 350, 350, "large") // beyond the capacity of the small one
	check(0.1, "small", 190, 210, "small")
	check(0.1, "large", 500, 600, "large") // beyond the capacity of both, of which the large one has more
	check(0.1, "small", 500, 600, "large")
	check(0.1, "small", 350, 450, "large")
	check(0.1, "large", 350, 450, "large")
}

// serve lets a rule see Poisson counts of rates, a tick each. It returns the changes and what served.
func serve(r *Rule, rates []float64, seed uint64) (changes int, served []string) {
	source := rand.NewPCG(seed, 0)
	for _, rate := range rates {
		n := 0
		if rate > 0 {
			n = int(distuv.Poisson{Lambda: rate, Src: source}.Rand())
		}
		if _, isOther := r.Observe(n); isOther {
			changes++
		}
		served = append(served, r.Current().Name)
	}
	return changes, served
}

func constant(rate float64, ticks int) []float64 { return slices.Repeat([]float64{rate}, ticks) }

// Under a constant rate a rule changes once at most, and never away from what is certainly better. 95 % intervals
// miss the rate in every twentieth look, but the intervals of the latencies must be passed too.
func TestConstantRatesDoNotFlap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		for _, rate := range []float64{0, 20, 100, 150, 190, 200, 210, 250, 300, 380, 500} {
			changes, served := serve(New(table(0.15)), constant(rate, 600), seed)
			if changes > 1 {
				t.Errorf("seed %d: %d changes at %g/s", seed, changes, rate)
			}
			want := map[bool]string{true: "small", false: "large"}[rate <= 100]
			if last := served[len(served)-1]; (rate <= 100 || rate >= 250) && last != want {
				t.Errorf("seed %d: %s serves %g/s, want %s", seed, last, rate, want)
			}
		}
	}
}

// A rule follows a day in both directions, within a minute of each change of the load.
func TestRulesFollowTheLoad(t *testing.T) {
	t.Parallel()
	rates := slices.Concat(constant(60, 200), constant(320, 200), constant(60, 200))
	changes, served := serve(New(table(0.15)), rates, 1)
	if changes != 3 {
		t.Errorf("%d changes, want 3: to small, to large, and back", changes)
	}
	for _, x := range []struct {
		tick int
		want string
	}{{199, "small"}, {210, "large"}, {399, "large"}, {464, "small"}, {599, "small"}} {
		if served[x.tick] != x.want {
			t.Errorf("%s serves at tick %d, want %s", served[x.tick], x.tick, x.want)
		}
	}
}

// More load than any configuration serves, and loads just below that, get the configuration with the most capacity.
func TestOverloadGetsTheMostCapacity(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{390, 396, 500, 2000} {
		changes, served := serve(New(table(0.15)), slices.Concat(constant(40, 100), constant(rate, 10)), 1)
		if last := served[len(served)-1]; changes != 2 || last != "large" {
			t.Errorf("%s serves %g/s after %d changes, want large after 2", last, rate, changes)
		}
	}
}

// Properties of any table and any counts: what serves is in the table, a table that does not pay changes
// nothing, and each change is to a configuration that is certainly better at some rate.
func TestProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		x := anyTable(random)
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("t", text); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		r := New(x)
		for range 300 {
			before := r.current
			c, isOther := r.Observe(random.IntN(500) - 5)
			if c.Name != r.Current().Name || isOther != (before != r.current) || !x.Pays && isOther {
				t.Fatalf("seed %d: %q, other %v", seed, c.Name, isOther)
			}
			if isOther && !isBetterSomewhere(x, r.current, before) {
				t.Fatalf("seed %d: %s replaces %s, which it beats nowhere", seed, c.Name, x.Configurations[before].Name)
			}
		}
	}
}

func anyTable(random *rand.Rand) *Table {
	x := &Table{Format: Format, Model: "m", Pays: random.IntN(4) > 0, Static: "0", Quantile: 0.99}
	for i := range 1 + random.IntN(6) {
		x.Rates = append(x.Rates, float64(50*(i+1)))
	}
	for i := range 1 + random.IntN(4) {
		c := Configuration{Name: string(rune('0' + i)), Config: []byte("{}"), Load: float64(random.IntN(3))}
		for range random.IntN(len(x.Rates) + 1) {
			v := 0.001 + random.Float64()/10
			c.Latencies = append(c.Latencies, Latency{v, v * (1 - random.Float64()/3), v * (1 + random.Float64()/3)})
		}
		x.Configurations = append(x.Configurations, c)
	}
	return x
}

func isBetterSomewhere(x *Table, a, b int) bool {
	for rate := 0.0; rate < 700; rate++ {
		if x.At(a, rate).High < x.At(b, rate).Low {
			return true
		}
	}
	return false
}

// A change that takes three seconds to load needs a look back of four.
func TestLoadsNeedEvidence(t *testing.T) {
	t.Parallel()
	x := table(0.1)
	x.Configurations[0].Load = 3
	changes, served := serve(New(x), constant(40, 3), 1)
	if changes != 0 || served[2] != "large" {
		t.Errorf("%d changes after three ticks", changes)
	}
	r := New(x)
	if changes, _ = serve(r, constant(40, 4), 1); changes != 1 {
		t.Errorf("%d changes after four ticks", changes)
	}
	r.Stay("large")
	if r.Current().Name != "large" {
		t.Errorf("%s serves after a change that failed", r.Current().Name)
	}
}

// A configuration to which the server cannot change is left out for 60 ticks, then 120, 240 … up to
// 3600. Another one that is better than the present one may serve meanwhile.
func TestFailuresAreNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	r := New(table(0.1))
	var tries []int
	for k := range 11_000 {
		if _, isOther := r.Observe(40); isOther {
			tries = append(tries, k)
			r.Stay("large")
		}
	}
	if want := []int{0, 60, 180, 420, 900, 1860, 3780, 7380, 10980}; !slices.Equal(tries, want) {
		t.Errorf("tries at %v, want %v", tries, want)
	}
	x := table(0.1)
	x.Configurations = append(x.Configurations, Configuration{Name: "middle", Config: []byte("{}"), Latencies: latencies(0.1, 0.012, 0.020, 0.030)})
	r = New(x)
	r.Observe(40)
	r.Stay("large")
	if c, _ := r.Observe(40); c.Name != "middle" {
		t.Errorf("%s serves while the best one is left out, want middle", c.Name)
	}
}

// The way back loads the model again: it needs as long a look back as the way there.
func TestTheWayBackLoadsToo(t *testing.T) {
	t.Parallel()
	x := table(0.1)
	x.Configurations[1].Load = 3 // the configuration that serves
	if changes, _ := serve(New(x), constant(40, 3), 1); changes != 0 {
		t.Errorf("%d changes after three ticks", changes)
	}
	if changes, _ := serve(New(x), constant(40, 4), 1); changes != 1 {
		t.Errorf("%d changes after four ticks", changes)
	}
}

// The interval of a count n contains the rate with which counts of that size come: |n − λ| ≤ 1.96 √λ.
func TestInterval(t *testing.T) {
	t.Parallel()
	for _, n := range []float64{0, 1, 10, 1000} {
		low, high := interval(n, 1, 1)
		for _, rate := range []float64{low, high} {
			if off := math.Abs(math.Abs(n-rate) - certain*math.Sqrt(rate)); rate > 0 && off > 1e-9*max(1, n) {
				t.Errorf("count %g: the end %g is off by %g", n, rate, off)
			}
		}
	}
	if low, high := interval(0, 1, 1); low != 0 || math.Abs(high-certain*certain) > 1e-9 {
		t.Errorf("a count of 0 is of rates from %g to %g", low, high)
	}
}

// Clustered requests have a wider interval.
func TestDispersion(t *testing.T) {
	t.Parallel()
	r := New(table(0.1))
	for i := range 64 {
		r.Observe(100 * (i % 2)) // differences of 100, whose squares are 5,000 each in half; mean 50
	}
	if d := r.dispersion(); math.Abs(d-100) > 1 {
		t.Errorf("a dispersion of %g, want 100", d)
	}
}

// What no table has is refused, with file and field.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	good, err := json.Marshal(table(0.1))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range [][3]string{
		{`"format":1`, `"format":2`, "format is 2"},
		{`"model":"m"`, `"model":""`, "model: is empty"},
		{`"static":"large"`, `"static":"huge"`, `there is no configuration "huge"`},
		{`[100,200`, `[100,100`, "rates[1]"},
		{`"rates":[100,200,300,400]`, `"rates":[]`, "rates: there are 0"},
		{`"load":0`, `"load":-1`, "configurations[0]: load"},
		{`"value":0.01,`, `"value":0.2,`, "latencies[0]"},
		{`"config":{}`, `"config":`, "is no table of configurations"},
	} {
		changed := strings.Replace(string(good), x[0], x[1], 1)
		if changed == string(good) {
			t.Fatalf("%s is not in %s", x[0], good)
		}
		if _, err := Parse("t.json", []byte(changed)); err == nil || !strings.Contains(err.Error(), x[2]) {
			t.Errorf("%s: %v, want %q", x[1], err, x[2])
		}
	}
}

// Any bytes are a table with which a rule works, or an error.
func FuzzParse(f *testing.F) {
	good, err := json.Marshal(table(0.1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"format":1,"model":"m","pays":true,"static":"a","rates":[1],"configurations":[{"name":"a","config":{}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := Parse("t.json", text)
		if err != nil {
			return
		}
		r := New(&x)
		for n := range 5 {
			r.Observe(100 * n)
		}
	})
}
