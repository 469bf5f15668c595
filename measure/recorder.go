package measure

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Recorder counts latencies as they come, in the buckets of a Histogram, so that its size (190 kB) does not depend on how many there
// are. It is for one goroutine.
type Recorder struct {
	counts *hdr.Histogram
	sum    time.Duration
}

// NewRecorder returns a Recorder without latencies.
func NewRecorder() *Recorder { return &Recorder{counts: newHDR()} }

// Record counts a latency, one outside a Histogram's range as the range's nearest end. It allocates nothing.
func (r *Recorder) Record(d time.Duration) {
	if err := r.counts.RecordValue(clampLatency(d)); err != nil {
		panic(err) // a clamped value lies within the range
	}
	r.sum += d
}

// Count is the number of latencies.
func (r *Recorder) Count() int { return int(r.counts.TotalCount()) }

// Sum is the sum of the latencies as they were, not of their buckets.
func (r *Recorder) Sum() time.Duration { return r.sum }

// Histogram is the distribution of the latencies so far; it does not change when more come.
func (r *Recorder) Histogram() Histogram { return fromHDR(r.counts) }

// Reset forgets all latencies.
func (r *Recorder) Reset() {
	r.counts.Reset()
	r.sum = 0
}
