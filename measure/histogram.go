package measure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The range of latency histograms is 1 µs to 10 min, with three significant digits.
const (
	lowestLatency  = int64(time.Microsecond)
	highestLatency = int64(10 * time.Minute)
	latencyDigits  = 3
)

// Histogram is an immutable latency distribution with HdrHistogram's buckets: 1 µs to 10 min with
// three significant digits. It keeps only the used buckets, so that it is small and merging is
// cheap. In JSON it is HdrHistogram's own compressed encoding (V2, base64), which other tools read.
// The zero value is the empty distribution.
type Histogram struct {
	bins  []bin // ascending by bucket, counts > 0
	count int64
}

// bin is the number of a bucket and the count of latencies in it, in 64 bits. A large campaign has
// tens of millions of bins in memory.
type bin uint64

// The lower countBits bits of a bin are the count. The bits above are the number of the bucket,
// below 2¹⁶. Files may only have counts below mostRead, so that a sum of many counts fits into
// countBits.
const (
	countBits = 48
	mostRead  = 1 << 40
)

func newBin(bucket int, count int64) bin { return bin(bucket)<<countBits | bin(count) }

func (b bin) bucket() int            { return int(b >> countBits) }
func (b bin) count() int64           { return int64(b & (1<<countBits - 1)) }
func (b bin) latency() time.Duration { return middleOf(b.bucket()) }

// NewHistogram counts latencies. It moves those outside the range to the nearest end.
func NewHistogram(latencies []time.Duration) Histogram {
	buckets := make([]int, len(latencies))
	for i, l := range latencies {
		buckets[i] = bucketOf(clampLatency(l))
	}
	slices.Sort(buckets)
	h := Histogram{count: int64(len(latencies))}
	for _, bucket := range buckets {
		h.bins = appendBin(h.bins, bucket, 1)
	}
	return h
}

// appendBin adds count latencies to a bucket, which must be the last one or lie behind it.
func appendBin(bins []bin, bucket int, count int64) []bin {
	if last := len(bins) - 1; last >= 0 && bins[last].bucket() == bucket {
		bins[last] += bin(count)
		return bins
	}
	return append(bins, newBin(bucket, count))
}

// Merge returns the sum of distributions.
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

// tallied merges in a table with a count for each bucket from the lowest to the highest. This takes
// a quarter of the time of plus. It returns false where most of that table would be empty.
func tallied(parts []Histogram) (sum Histogram, ok bool) {
	const sparse = 16 // table size per used bucket
	first, last, used := math.MaxInt, 0, 0
	for _, p := range parts {
		if n := len(p.bins); n > 0 {
			first, last = min(first, p.bins[0].bucket()), max(last, p.bins[n-1].bucket())
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
			i := b.bucket() - first
			if counts[i] == 0 {
				used++
			}
			counts[i] += b.count()
		}
		sum.count += p.count
	}
	sum.bins = make([]bin, 0, used)
	for i, n := range counts {
		if n > 0 {
			sum.bins = append(sum.bins, newBin(first+i, n))
		}
	}
	return sum, true
}

// plus returns the sum of two distributions.
func (h Histogram) plus(other Histogram) Histogram {
	a, b := h.bins, other.bins
	sum := make([]bin, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].bucket() < b[0].bucket():
			sum, a = append(sum, a[0]), a[1:]
		case a[0].bucket() > b[0].bucket():
			sum, b = append(sum, b[0]), b[1:]
		default:
			sum, a, b = append(sum, newBin(a[0].bucket(), a[0].count()+b[0].count())), a[1:], b[1:]
		}
	}
	return Histogram{append(append(sum, a...), b...), h.count + other.count}
}

// Count returns the number of latencies.
func (h Histogram) Count() int { return int(h.count) }

// Rank returns the latency with the given rank in ascending order, from 1. It moves ranks outside
// 1..Count to the nearest end. For the empty distribution it returns 0.
func (h Histogram) Rank(rank int) time.Duration {
	var seen int64
	for _, b := range h.bins {
		if seen += b.count(); seen >= int64(rank) {
			return b.latency()
		}
	}
	if len(h.bins) == 0 {
		return 0
	}
	return h.bins[len(h.bins)-1].latency()
}

// Quantile returns the latency that the share q (0..1) of the requests did not exceed. For the
// empty distribution it returns 0.
func (h Histogram) Quantile(q float64) time.Duration {
	return h.Rank(quantileRank(h.count, q))
}

// CountAtMost returns the number of latencies in the buckets up to the bucket of value.
func (h Histogram) CountAtMost(value time.Duration) int {
	var n int64
	for _, b := range h.bins {
		if b.latency() > value {
			break
		}
		n += b.count()
	}
	return int(n)
}

// Mean returns the mean latency. For the empty distribution it returns 0.
func (h Histogram) Mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	var sum float64
	for _, b := range h.bins {
		sum += float64(b.latency()) * float64(b.count())
	}
	return time.Duration(sum / float64(h.count))
}

// Std returns the standard deviation of the latencies. It is 0 for fewer than two.
func (h Histogram) Std() time.Duration {
	if h.count < 2 {
		return 0
	}
	mean := float64(h.Mean())
	var squares float64
	for _, b := range h.bins {
		squares += (float64(b.latency()) - mean) * (float64(b.latency()) - mean) * float64(b.count())
	}
	return time.Duration(math.Sqrt(squares / float64(h.count-1)))
}

// logExcess returns the mean of ln(x/start) over the latencies x above start. It is 0 if no latency
// is above start.
func (h Histogram) logExcess(start time.Duration) float64 {
	sum, count := 0.0, 0.0
	for _, b := range h.bins {
		if b.latency() > start {
			sum += math.Log(float64(b.latency())/float64(start)) * float64(b.count())
			count += float64(b.count())
		}
	}
	return sum / max(count, 1)
}

// Equal reports whether two distributions have the same counts.
func (h Histogram) Equal(other Histogram) bool { return slices.Equal(h.bins, other.bins) }

// MarshalJSON writes HdrHistogram's base64 text. For the empty distribution it writes "".
func (h Histogram) MarshalJSON() ([]byte, error) {
	if h.count == 0 {
		return []byte(`""`), nil
	}
	text, err := encode(h)
	if err != nil {
		return nil, fmt.Errorf("cannot encode latency histogram: %w", err)
	}
	return slices.Concat([]byte{'"'}, text, []byte{'"'}), nil
}

// UnmarshalJSON reads the text of MarshalJSON. It refuses a text that is not an encoded histogram.
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
	full, err := hdr.Decode(text) // of another tool
	if err != nil {
		return fmt.Errorf("cannot decode latency histogram: %w", err)
	}
	if *h, err = fromHDR(full); err != nil {
		return fmt.Errorf("cannot decode latency histogram: %w", err)
	}
	return nil
}

// textOf returns the text of a JSON string. A string without escapes shares the memory of data.
func textOf(data []byte) ([]byte, error) {
	if last := len(data) - 1; last > 0 && data[0] == '"' && data[last] == '"' && bytes.IndexByte(data, '\\') < 0 {
		return data[1:last], nil
	}
	var text string
	err := json.Unmarshal(data, &text)
	return []byte(text), err
}

// fromHDR converts a histogram of any range and resolution to our buckets.
func fromHDR(full *hdr.Histogram) (h Histogram, err error) {
	for _, bar := range full.Distribution() {
		if bar.Count == 0 {
			continue
		}
		if bar.Count < 0 || bar.Count >= mostRead {
			return Histogram{}, fmt.Errorf("%d latencies of %v", bar.Count, time.Duration(bar.From))
		}
		h.bins = appendBin(h.bins, bucketOf(clampLatency(time.Duration(bar.From+(bar.To-bar.From)/2))), bar.Count)
		h.count += bar.Count
	}
	return h, nil
}

func clampLatency(l time.Duration) int64 { return min(max(int64(l), lowestLatency), highestLatency) }

// quantileRank returns the rank of the q-quantile among n values: the smallest with at least the
// share q at or below it.
func quantileRank(n int64, q float64) int {
	rank := int64(q * float64(n))
	if float64(rank) < q*float64(n) {
		rank++
	}
	return int(min(max(rank, 1), n))
}
