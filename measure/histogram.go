package measure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The range and the resolution of latency histograms: 1 µs to 10 min with three significant digits.
const (
	lowestLatency  = int64(time.Microsecond)
	highestLatency = int64(10 * time.Minute)
	latencyDigits  = 3
)

// Histogram is an immutable latency distribution with HdrHistogram's buckets: 1 µs to 10 min with three significant
// digits. It keeps the used buckets only, so that it is small and merging is cheap; in JSON it is HdrHistogram's own
// compressed encoding (V2, base64), which other tools read. The zero value is the empty distribution.
type Histogram struct {
	bins  []bin // ascending by latency, counts > 0
	count int64
}

// bin is one bucket: how many latencies fell into it, and the latency in its middle.
type bin struct {
	latency time.Duration
	count   int64
}

// NewHistogram counts latencies; those outside the range count as its nearest end.
func NewHistogram(latencies []time.Duration) (Histogram, error) {
	if len(latencies) == 0 {
		return Histogram{}, nil
	}
	h := newPacked()
	for _, l := range latencies {
		if err := h.RecordValue(clampLatency(l)); err != nil {
			return Histogram{}, fmt.Errorf("cannot record latency %v: %w", l, err)
		}
	}
	return fromPacked(h), nil
}

// Merge adds distributions up.
func Merge(parts ...Histogram) Histogram {
	switch len(parts) {
	case 0:
		return Histogram{}
	case 1:
		return parts[0]
	}
	if sum, ok := tallied(parts); ok {
		return sum
	}
	half := len(parts) / 2
	return Merge(parts[:half]...).plus(Merge(parts[half:]...))
}

// tallied is Merge in a table with a count for each bucket from the lowest to the highest, which takes a quarter of the time. It is false
// where most of that table would be empty, and for a latency that is not the middle of a bucket of ours.
func tallied(parts []Histogram) (sum Histogram, ok bool) {
	const sparse = 16 // buckets for each one in use
	first, last, used := math.MaxInt, 0, 0
	for _, p := range parts {
		if n := len(p.bins); n > 0 {
			first, last = min(first, bucketOf(int64(p.bins[0].latency))), max(last, bucketOf(int64(p.bins[n-1].latency)))
			used += n
		}
	}
	if used == 0 || last-first >= sparse*used {
		return Histogram{}, used == 0
	}
	counts := make([]int64, last-first+1)
	used = 0
	for _, p := range parts {
		for _, b := range p.bins {
			i := bucketOf(int64(b.latency))
			if middleOf(i) != b.latency {
				return Histogram{}, false
			}
			if counts[i-first] == 0 {
				used++
			}
			counts[i-first] += b.count
		}
		sum.count += p.count
	}
	sum.bins = make([]bin, 0, used)
	for i, n := range counts {
		if n > 0 {
			sum.bins = append(sum.bins, bin{middleOf(first + i), n})
		}
	}
	return sum, true
}

// plus is the sum of two distributions.
func (h Histogram) plus(other Histogram) Histogram {
	a, b := h.bins, other.bins
	sum := make([]bin, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].latency < b[0].latency:
			sum, a = append(sum, a[0]), a[1:]
		case a[0].latency > b[0].latency:
			sum, b = append(sum, b[0]), b[1:]
		default:
			sum, a, b = append(sum, bin{a[0].latency, a[0].count + b[0].count}), a[1:], b[1:]
		}
	}
	return Histogram{append(append(sum, a...), b...), h.count + other.count}
}

// Count is the number of latencies.
func (h Histogram) Count() int { return int(h.count) }

// Rank returns the latency with the given rank in ascending order, from 1; ranks outside 1..Count count as the nearest.
// 0 for the empty distribution.
func (h Histogram) Rank(rank int) time.Duration {
	var seen int64
	for _, b := range h.bins {
		if seen += b.count; seen >= int64(rank) {
			return b.latency
		}
	}
	if len(h.bins) == 0 {
		return 0
	}
	return h.bins[len(h.bins)-1].latency
}

// Quantile returns the latency that the share q (0..1) of the requests did not exceed. 0 for the empty distribution.
func (h Histogram) Quantile(q float64) time.Duration {
	return h.Rank(quantileRank(h.count, q))
}

// CountAtMost is the number of latencies in the buckets up to the value's.
func (h Histogram) CountAtMost(value time.Duration) int {
	var n int64
	for _, b := range h.bins {
		if b.latency > value {
			break
		}
		n += b.count
	}
	return int(n)
}

// Mean is the mean latency; 0 for the empty distribution.
func (h Histogram) Mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	var sum float64
	for _, b := range h.bins {
		sum += float64(b.latency) * float64(b.count)
	}
	return time.Duration(sum / float64(h.count))
}

// Std is the latencies' standard deviation; 0 below two.
func (h Histogram) Std() time.Duration {
	if h.count < 2 {
		return 0
	}
	mean := float64(h.Mean())
	var squares float64
	for _, b := range h.bins {
		squares += (float64(b.latency) - mean) * (float64(b.latency) - mean) * float64(b.count)
	}
	return time.Duration(math.Sqrt(squares / float64(h.count-1)))
}

// Equal reports whether two distributions have the same counts.
func (h Histogram) Equal(other Histogram) bool { return slices.Equal(h.bins, other.bins) }

// MarshalJSON writes HdrHistogram's base64 text; "" for the empty distribution.
func (h Histogram) MarshalJSON() ([]byte, error) {
	if h.count == 0 {
		return []byte(`""`), nil
	}
	packed := newPacked()
	for _, b := range h.bins {
		if err := packed.RecordValues(clampLatency(b.latency), b.count); err != nil {
			return nil, fmt.Errorf("cannot encode latency histogram: %w", err)
		}
	}
	encoded, err := packed.Encode()
	if err != nil {
		return nil, fmt.Errorf("cannot encode latency histogram: %w", err)
	}
	return json.Marshal(string(encoded))
}

// UnmarshalJSON reads what MarshalJSON wrote, and refuses text that is not an encoded histogram.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	text, err := textOf(data)
	if err != nil {
		return fmt.Errorf("cannot read latency histogram: %w", err)
	}
	if len(text) == 0 {
		*h = Histogram{}
		return nil
	}
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	if decoded, ok := d.decode(text); ok {
		*h = decoded
		return nil
	}
	full, err := hdr.Decode(text) // another tool's
	if err != nil {
		return fmt.Errorf("cannot decode latency histogram: %w", err)
	}
	*h = fromHDR(full)
	return nil
}

// textOf is the text of a JSON string; that of one without escapes is a part of data.
func textOf(data []byte) ([]byte, error) {
	if last := len(data) - 1; last > 0 && data[0] == '"' && data[last] == '"' && bytes.IndexByte(data, '\\') < 0 {
		return data[1:last], nil
	}
	var text string
	err := json.Unmarshal(data, &text)
	return []byte(text), err
}

// newPacked is HdrHistogram's own histogram of our range and resolution.
func newPacked() *hdr.PackedHistogram {
	return hdr.NewPacked(lowestLatency, highestLatency, latencyDigits)
}

// fromPacked is fromHDR for a histogram with our own range and resolution, without going through all buckets that there may be.
func fromPacked(packed *hdr.PackedHistogram) Histogram {
	h := Histogram{bins: make([]bin, 0, packed.Populated())}
	packed.ForEachBucket(func(value, count int64) bool {
		half := (bucketWidth(value) - 1) / 2
		h.bins = append(h.bins, bin{time.Duration(value + half), count})
		h.count += count
		return true
	})
	return h
}

// bucketWidth is the width of the bucket that begins at a value: of the largest power of two up to lowestLatency, and twice as much from each power of
// two on that 2,048 buckets do not reach (HdrHistogram's layout for three digits).
func bucketWidth(value int64) int64 {
	unit := bits.Len64(uint64(lowestLatency)) - 1
	const subBuckets = 11 // log₂ 2,048
	return 1 << (unit + max(0, bits.Len64(uint64(value))-unit-subBuckets))
}

// fromHDR keeps the used buckets.
func fromHDR(full *hdr.Histogram) Histogram {
	var h Histogram
	for _, bar := range full.Distribution() {
		if bar.Count > 0 {
			h.bins = append(h.bins, bin{time.Duration(bar.From + (bar.To-bar.From)/2), bar.Count})
			h.count += bar.Count
		}
	}
	return h
}

func clampLatency(l time.Duration) int64 { return min(max(int64(l), lowestLatency), highestLatency) }

// quantileRank is the rank of the q-quantile among n values: the smallest with at least the share q at or below it.
func quantileRank(n int64, q float64) int {
	rank := int64(q * float64(n))
	if float64(rank) < q*float64(n) {
		rank++
	}
	return int(min(max(rank, 1), n))
}
