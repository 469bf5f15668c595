package measure

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
)

func histogram(latencies ...time.Duration) Histogram { return NewHistogram(latencies) }

// near reports whether a and b differ by at most the given share of b.
func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Abs(b) }

func TestHistogramRanks(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	latencies := make([]time.Duration, 1000)
	for i := range latencies {
		latencies[i] = time.Duration(float64(20*time.Millisecond) * math.Exp(random.NormFloat64()))
	}
	h := histogram(latencies...)
	slices.Sort(latencies)
	// Three significant digits: a bucket is at most 1/1024 wide, so its middle is at most 0.05 %
	// off.
	for _, rank := range []int{1, 2, 500, 990, 1000} {
		if got, want := h.Rank(rank), latencies[rank-1]; !near(float64(got), float64(want), 0.0006) {
			t.Errorf("rank %d is %v, want %v", rank, got, want)
		}
	}
	if got, want := h.Quantile(0.99), h.Rank(990); got != want {
		t.Errorf("99th percentile of 1000 is %v, want the value of rank 990, %v", got, want)
	}
	if h.Rank(0) != h.Rank(1) || h.Rank(2000) != h.Rank(1000) {
		t.Error("ranks outside 1..n do not count as the nearest")
	}
}

func TestHistogramMergeEqualsRecordingAll(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	parts := []Histogram{histogram(3*ms, ms, 7*ms), {}, histogram(3*ms, 2*ms)}
	merged := Merge(parts...)
	if diff := cmp.Diff(histogram(ms, 2*ms, 3*ms, 3*ms, 7*ms), merged); diff != "" {
		t.Errorf("merged differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Histogram{histogram(3*ms, ms, 7*ms), {}, histogram(3*ms, 2*ms)}, parts); diff != "" {
		t.Errorf("the parts changed (-want +got):\n%s", diff)
	}
	// (1+2+3+3+7)/5
	if got := merged.Mean(); !near(got.Seconds(), 0.0032, 0.001) {
		t.Errorf("mean is %v, want 3.2 ms", got)
	}
}

func TestHistogramCountsUpToAValue(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	h := histogram(ms, 2*ms, 2*ms, 5*ms)
	for rank, want := range map[int]int{1: 1, 2: 3, 4: 4} {
		if got := h.CountAtMost(h.Rank(rank)); got != want {
			t.Errorf("%d latencies up to rank %d, want %d", got, rank, want)
		}
	}
	if h.CountAtMost(ms/2) != 0 || h.CountAtMost(time.Hour) != 4 || (Histogram{}).CountAtMost(ms) != 0 {
		t.Error("below, above or of nothing is wrong")
	}
}

func TestHistogramStd(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	// 2, 4, 6 ms: squares 4 + 0 + 4 over 2.
	if got := histogram(2*ms, 4*ms, 6*ms).Std(); !near(float64(got), float64(2*ms), 0.001) {
		t.Errorf("of 2, 4, 6 ms is %v, want 2 ms", got)
	}
	// 100,000 latencies of 100 s and 100,000 of 300 s: the sum of squares in ns overflows 64 bits.
	many := append(repeat(100*time.Second, 100_000), repeat(300*time.Second, 100_000)...)
	if got := histogram(many...).Std(); !near(got.Seconds(), 100, 0.001) {
		t.Errorf("of 100 and 300 s is %v, want 100 s", got)
	}
	if histogram(ms).Std() != 0 || (Histogram{}).Std() != 0 {
		t.Error("less than two latencies vary")
	}
}

func TestHistogramClampsAtItsEnds(t *testing.T) {
	t.Parallel()
	h := histogram(-time.Second, 0, time.Hour)
	if h.Count() != 3 || h.Rank(1) > 2*time.Microsecond || !near(h.Rank(3).Minutes(), 10, 0.001) {
		t.Errorf("counts %d, from %v to %v, want 3 from 1 µs to 10 min", h.Count(), h.Rank(1), h.Rank(3))
	}
}

func TestEmptyHistogram(t *testing.T) {
	t.Parallel()
	var h Histogram
	if h.Count() != 0 || h.Mean() != 0 || h.Quantile(0.5) != 0 || !h.Equal(Merge()) || !h.Equal(histogram()) {
		t.Errorf("the zero value is not the empty distribution: %+v", h)
	}
}

func TestHistogramJSONRoundTrip(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(19, 20))
	latencies := []time.Duration{0, time.Hour}
	for range 500 {
		latencies = append(latencies, time.Duration(math.Exp(25*random.Float64()))) // 1 ns to 72 s
	}
	for _, want := range []Histogram{{}, histogram(latencies...)} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Histogram
		if err := json.Unmarshal(text, &got); err != nil || !got.Equal(want) || got.Count() != want.Count() {
			t.Errorf("%d latencies became %d others, %v", want.Count(), got.Count(), err)
		}
	}
	for _, text := range []string{`"nonsense"`, `7`, `"HISTFAAA"`} {
		if err := json.Unmarshal([]byte(text), new(Histogram)); err == nil {
			t.Errorf("%s was read as a histogram", text)
		}
	}
}

// Merging in a table gives the same sum as merging pair by pair.
func TestMergeInATable(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(41, 42))
	var parts []Histogram
	for i := range 20 {
		parts = append(parts, histogram(logNormal(random, 10*i, 10*time.Millisecond, 0.1)...))
	}
	sum, ok := tallied(parts)
	want := Histogram{}
	for _, p := range parts {
		want = want.plus(p)
	}
	if !ok || !sum.Equal(want) || sum.Count() != want.Count() || !Merge(parts...).Equal(want) {
		t.Errorf("%d latencies in a table (%t), %d merged, want %d", sum.Count(), ok, Merge(parts...).Count(), want.Count())
	}
	far := []Histogram{histogram(time.Microsecond), histogram(time.Minute)}
	if _, ok := tallied(far); ok || Merge(far...).Count() != 2 {
		t.Error("a table was made for two latencies that are far apart")
	}
	if sum, ok := tallied(make([]Histogram, 2)); !ok || sum.Count() != 0 {
		t.Error("nothing and nothing is something")
	}
}

func newHDR() *hdr.Histogram { return hdr.New(lowestLatency, highestLatency, latencyDigits) }

// The text is the same as HdrHistogram's own. A large one is identical to the byte; others differ
// only in that they are stored, not compressed.
func TestHistogramJSONIsHdrHistogramsOwn(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(43, 44))
	large := append(logNormal(random, 1000, 5*time.Millisecond, 1), 0, time.Hour)
	for _, latencies := range [][]time.Duration{
		large, large[:50], {0}, {time.Hour}, {time.Microsecond, 3 * time.Microsecond}, repeat(time.Second, 100_000), logNormal(random, 300, time.Second, 0.01),
	} {
		full := newHDR()
		for _, l := range latencies {
			if err := full.RecordValue(clampLatency(l)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := full.Encode(hdr.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		got := encoded(t, histogram(latencies...))
		if len(latencies) == len(large) && string(got) != string(want) {
			t.Errorf("written as %s, want %s", got, want)
		}
		if got, want := inflated(t, got), inflated(t, want); !bytes.Equal(got, want) {
			t.Errorf("%d latencies are written as %x, want %x", len(latencies), got, want)
		}
	}
}

// inflated returns the content of a histogram's zlib stream, by the standard library.
func inflated(t *testing.T, text []byte) []byte {
	t.Helper()
	packed := unpacked(t, text)
	if length := int(binary.BigEndian.Uint32(packed[4:])); length != len(packed)-8 {
		t.Errorf("%d bytes follow, not %d", len(packed)-8, length)
	}
	r, err := zlib.NewReader(bytes.NewReader(packed[8:]))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Our buckets are HdrHistogram's, over the whole range and at its ends. This holds for latencies
// counted together and recorded one by one.
func TestBucketsAreHdrHistograms(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(25, 26))
	var latencies []time.Duration
	for double := 9; double < 41; double++ {
		for edge := range 3 { // near powers of two, where buckets become wider
			latencies = append(latencies, time.Duration(1<<double+edge-1))
		}
		for range 300 {
			latencies = append(latencies, time.Duration(1<<double+random.Int64N(1<<double)))
		}
	}
	full, recorder := newHDR(), NewRecorder()
	for _, l := range latencies {
		recorder.Record(l)
		if err := full.RecordValue(clampLatency(l)); err != nil {
			t.Fatal(err)
		}
	}
	var want Histogram
	for _, bar := range full.Distribution() {
		if bar.Count > 0 {
			want.bins = append(want.bins, newBin(bucketOf(bar.From), bar.Count))
			if first, last := bucketOf(bar.From), bucketOf(bar.To); first != last || middleOf(first) != time.Duration(bar.From+(bar.To-bar.From)/2) {
				t.Errorf("%d to %d are buckets %d to %d, the first around %v", bar.From, bar.To, first, last, middleOf(first))
			}
		}
	}
	for how, got := range map[string]Histogram{"counted": NewHistogram(latencies), "recorded": recorder.Histogram()} {
		if !got.Equal(want) || got.Count() != len(latencies) {
			t.Errorf("%s: %d latencies, %v; HdrHistogram has %v", how, got.Count(), got, want)
		}
	}
}

// Counts that no load generator can reach are refused, so that sums of counts stay within their
// bits.
func TestHistogramOfTooMany(t *testing.T) {
	t.Parallel()
	full := newHDR()
	if err := full.RecordValues(int64(time.Second), mostRead); err != nil {
		t.Fatal(err)
	}
	text, err := full.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	var h Histogram
	if err := json.Unmarshal([]byte(`"`+string(text)+`"`), &h); err == nil {
		t.Errorf("%d latencies were read", h.Count())
	}
}

func FuzzHistogramJSON(f *testing.F) {
	for _, latencies := range [][]time.Duration{nil, {time.Microsecond}, {20 * time.Millisecond, 21 * time.Millisecond, time.Hour}} {
		text, err := json.Marshal(histogram(latencies...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`"HISTFAAA"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		var first, second Histogram
		if json.Unmarshal(text, &first) != nil {
			return
		}
		again, err := json.Marshal(first)
		if err != nil {
			return // foreign buckets may hold more than a bin can count
		}
		if err := json.Unmarshal(again, &second); err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		if first.Count() != second.Count() {
			t.Errorf("%d latencies became %d", first.Count(), second.Count())
		}
	})
}
