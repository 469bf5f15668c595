package measure

import (
	"math/bits"
	"time"
)

// HdrHistogram's buckets for the range of latencies. 1 µs lies in a bucket of 2⁹ ns. Three digits
// need 2¹¹ buckets of this width. Beyond them each doubling of the latency has half as many
// buckets, twice as wide. Source: hdr.New, and getBucketIndex there.
const (
	narrowestBits = 9
	bucketBits    = 11
)

// bucketOf returns the number of a latency's bucket.
func bucketOf(latency int64) int {
	doublings := max(0, bits.Len64(uint64(latency))-narrowestBits-bucketBits)
	return doublings<<(bucketBits-1) + int(latency>>(doublings+narrowestBits))
}

// middleOf returns the latency in the middle of a bucket.
func middleOf(bucket int) time.Duration {
	doublings := max(0, bucket>>(bucketBits-1)-1)
	width := int64(1) << (doublings + narrowestBits)
	return time.Duration(int64(bucket-doublings<<(bucketBits-1))*width + (width-1)/2)
}

// Recorder counts latencies in the buckets of a Histogram as they arrive. Its size (170 kB) does
// not depend on their number. It is for one goroutine.
type Recorder struct {
	counts []int64
	lo, hi int // only buckets lo ≤ i < hi may be in use
	count  int
	sum    time.Duration
}

// NewRecorder returns a Recorder without latencies.
func NewRecorder() *Recorder {
	n := bucketOf(highestLatency) + 1
	return &Recorder{counts: make([]int64, n), lo: n}
}

// Record counts a latency. It moves a latency outside a Histogram's range to the nearest end. It
// allocates nothing.
func (r *Recorder) Record(d time.Duration) {
	i := bucketOf(clampLatency(d))
	r.counts[i]++
	r.lo, r.hi = min(r.lo, i), max(r.hi, i+1)
	r.count++
	r.sum += d
}

// Count is the number of latencies.
func (r *Recorder) Count() int { return r.count }

// Sum returns the exact sum of the latencies, without the rounding of the buckets.
func (r *Recorder) Sum() time.Duration { return r.sum }

// Histogram returns the distribution of the latencies so far. Later calls of Record do not change
// it.
func (r *Recorder) Histogram() Histogram {
	h := Histogram{count: int64(r.count)}
	for i := r.lo; i < r.hi; i++ {
		if n := r.counts[i]; n > 0 {
			h.bins = append(h.bins, newBin(i, n))
		}
	}
	return h
}

// Reset forgets all latencies.
func (r *Recorder) Reset() {
	if r.lo < r.hi {
		clear(r.counts[r.lo:r.hi])
	}
	*r = Recorder{counts: r.counts, lo: len(r.counts)}
}
