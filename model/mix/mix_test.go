package mix

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func kind(share float64, sizes ...int64) Kind {
	return Kind{share, map[string][]int64{"ids": sizes}}
}

func must(t *testing.T, kinds ...Kind) Mix {
	t.Helper()
	m, err := New(kinds)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Weights become shares, equal shapes one kind, and the smallest kind is first. 6 + 1 + 3 = 10.
func TestNew(t *testing.T) {
	t.Parallel()
	m := must(t, kind(6, 16), kind(1, 256), kind(0, 8), kind(1, 64), kind(2, 64))
	want := Mix{kind(0.6, 16), kind(0.3, 64), kind(0.1, 256)}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if got := m.String(); got != "60 % ids [16], 30 % [64], 10 % [256]" {
		t.Errorf("the mix reads %q", got)
	}
	if m.Usual() != 0 || m.Largest().Elements() != 256 {
		t.Errorf("the usual kind is %d, the largest has %v elements", m.Usual(), m.Largest().Elements())
	}
	other := must(t, kind(5, 16), kind(3, 64), kind(1, 256))
	if len(m.Digest()) != 64 || m.Digest() == other.Digest() {
		t.Errorf("the digests are %q and %q", m.Digest(), other.Digest())
	}
}

func TestBadWeights(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string][]Kind{
		"none": nil, "zero": {kind(0, 1), kind(0, 2)}, "negative": {kind(-1, 1), kind(2, 2)},
		"NaN": {kind(math.NaN(), 1)}, "infinite": {kind(math.Inf(1), 1)}, "overflow": {kind(math.MaxFloat64, 1), kind(math.MaxFloat64, 2)},
	} {
		if m, err := New(kinds); err == nil {
			t.Errorf("%s: got %v", name, m)
		}
	}
}

// Inputs that do not differ are left out of the text. Two that differ alike are written once.
func TestString(t *testing.T) {
	t.Parallel()
	of := func(share float64, n int64) Kind {
		return Kind{share, map[string][]int64{"ids": {n}, "mask": {n}, "sr": {1}}}
	}
	if got := must(t, of(1, 8), of(1, 9)).String(); got != "50 % ids [8], mask [8], 50 % [9]" {
		t.Errorf("got %q", got)
	}
	var many []Kind
	for n := range int64(10) {
		many = append(many, kind(1, n+1))
	}
	if got := must(t, many...).String(); got != "10 shapes from ids [1] to ids [10]" {
		t.Errorf("got %q", got)
	}
	if got := Mix(nil).String(); got != "one shape" {
		t.Errorf("no mix reads %q", got)
	}
}

// Of 11 requests with the shares 0.6, 0.3 and 0.1, 6.6, 3.3 and 1.1 are exact. The largest
// remainder gets the one that is left.
func TestDeal(t *testing.T) {
	t.Parallel()
	m := must(t, kind(6, 16), kind(3, 64), kind(1, 256))
	dealt := m.Deal(11, 7)
	counts := map[int]int{}
	for _, k := range dealt {
		counts[k]++
	}
	if diff := cmp.Diff(map[int]int{0: 7, 1: 3, 2: 1}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if slices.IsSorted(dealt) {
		t.Error("the kinds come in order")
	}
	if diff := cmp.Diff(dealt, m.Deal(11, 7)); diff != "" {
		t.Errorf("the same seed gives another order:\n%s", diff)
	}
}

// Each client of a cycle whose length is prime meets all requests: it sends every c-th one.
func TestCycle(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 3, 4: 3, 32: 31, 100: 97, 1024: 1021} {
		if got := Cycle(n); got != want {
			t.Errorf("Cycle(%d) = %d, want %d", n, got, want)
		}
	}
	n := Cycle(1024)
	for concurrency := 1; concurrency <= 512; concurrency++ {
		met := map[int]bool{}
		for i := range n {
			met[i*concurrency%n] = true
		}
		if len(met) != n {
			t.Errorf("a client of %d meets %d of %d requests", concurrency, len(met), n)
		}
	}
}

func TestReadHistogram(t *testing.T) {
	t.Parallel()
	want := []Size{{16, 6}, {64, 3}, {256, 1}}
	for _, text := range []string{"16,6\n64,3\n256,1\n", "value,weight\n16, 6\n64,3.0\n256,1e0", "# lengths\n16,6\r\n64,3\r\n256,1\r\n"} {
		got, err := ReadHistogram(strings.NewReader(text))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q (-want +got), %v:\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"": "it has no sizes", "a,b": "it has no sizes", "16,6\n0,1": `line 2: "0" is not a size`, "16,6\n7.5,1": `line 2: "7.5" is not a size`,
		"16,-1": `line 1: "-1" is not a weight`, "16,NaN": `line 1: "NaN" is not a weight`, "16,Inf": `line 1: "Inf" is not a weight`,
		"16,6\n17": "wrong number of fields", "16,x": `line 1: "x" is not a weight`,
	} {
		if got, err := ReadHistogram(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, error %v, want %q", text, got, err, want)
		}
	}
}

// FuzzReadHistogram checks that what is read is valid, and that it can be written and read again.
func FuzzReadHistogram(f *testing.F) {
	f.Add("value,weight\n16,6\n64,3\n")
	f.Add("\"16\", 0.25\n# x\n17,1e300")
	f.Add("16,6\n,\n")
	f.Fuzz(func(t *testing.T, text string) {
		sizes, err := ReadHistogram(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, s := range sizes {
			if s.Size < 1 || !(s.Weight >= 0) || math.IsInf(s.Weight, 0) {
				t.Errorf("%q has %+v", text, s)
			}
		}
		if n := len(Binned(sizes)); n > MostKinds || n == 0 {
			t.Errorf("%q becomes %d kinds", text, n)
		}
	})
}

// A lognormal distribution with the median 40 and the 99 % quantile 300 has the mean
// 40·exp(σ²/2) with σ = ln(7.5)/2.3263 = 0.8661: 58.2. The bins keep the mean, and half of them are
// below the median.
func TestLognormal(t *testing.T) {
	t.Parallel()
	sizes := Lognormal{P50: 40, P99: 300}.Sizes()
	total, weight, below := 0.0, 0.0, 0.0
	for _, s := range sizes {
		total, weight = total+s.Weight*float64(s.Size), weight+s.Weight
		if s.Size < 40 {
			below += s.Weight
		}
	}
	if mean := total / weight; math.Abs(mean/58.2-1) > 0.01 {
		t.Errorf("the mean is %v, want 58.2", mean)
	}
	if weight != MostKinds || math.Abs(below/weight-0.5) > 1.5/MostKinds {
		t.Errorf("%v of %v are below the median", below, weight)
	}
	for _, s := range (Lognormal{P50: 40, P99: 300, Max: 100}).Sizes() {
		if s.Size > 100 {
			t.Errorf("a size is %d beyond the maximum", s.Size)
		}
	}
	if got := (Lognormal{P50: 40, P99: 40}).Sizes(); len(got) != 1 || got[0].Size != 40 {
		t.Errorf("without spread: %v", got)
	}
}

// Bins keep weight and mean, and there are no more than MostKinds.
func TestBinned(t *testing.T) {
	t.Parallel()
	var sizes []Size
	for n := range int64(1000) {
		sizes = append(sizes, Size{n + 1, float64(n%7 + 1)})
	}
	sizes = append(sizes, Size{500, 900}) // a quarter of all
	sum := func(list []Size) (weight, mean float64) {
		for _, s := range list {
			weight, mean = weight+s.Weight, mean+s.Weight*float64(s.Size)
		}
		return weight, mean / weight
	}
	bins := Binned(sizes)
	weight, mean := sum(sizes)
	binWeight, binMean := sum(bins)
	if len(bins) > MostKinds || len(bins) < MostKinds/2 || math.Abs(binWeight/weight-1) > 1e-9 || math.Abs(binMean/mean-1) > 0.002 {
		t.Errorf("%d bins of weight %v and mean %v, want %v and %v", len(bins), binWeight, binMean, weight, mean)
	}
	few := []Size{{64, 1}, {16, 2}, {64, 1}}
	if diff := cmp.Diff([]Size{{16, 2}, {64, 2}}, Binned(few)); diff != "" {
		t.Errorf("few sizes (-want +got):\n%s", diff)
	}
}

// Each size lies in the bin whose weight counts it, whatever the sizes and weights.
func TestBinOf(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 0))
	for range 200 {
		var sizes []Size
		for range 1 + random.IntN(300) {
			sizes = append(sizes, Size{1 + random.Int64N(400), float64(random.IntN(5))})
		}
		bins, bin := Binned(sizes), BinOf(sizes)
		got := make([]float64, len(bins))
		for _, s := range sizes {
			got[bin(s.Size)] += s.Weight
		}
		for i, b := range bins {
			if math.Abs(got[i]-b.Weight) > 1e-9 {
				t.Fatalf("the sizes in bin %d weigh %v, want %v", i, got[i], b.Weight)
			}
		}
	}
}
