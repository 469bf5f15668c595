package arrivals

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// MostInstants bounds a trace, and so the memory that holds it: 80 MB.
const MostInstants = 10_000_000

// Trace has the instants of recorded requests as distances. It is immutable.
type Trace struct {
	SHA256   string        `json:"sha256"`   // of the file
	Requests int           `json:"requests"` // number of gaps in the file
	Length   time.Duration `json:"length"`   // sum of all gaps, above 0: the trace then begins again
	// Gaps are the distances before each request. A sample has fewer than Requests.
	Gaps []time.Duration `json:"gaps"`
	// Sizes are those of the requests, beside Gaps, if the file has them. The user says what they
	// are the size of.
	Sizes []int64 `json:"-"`
	// Kinds are the kinds of the requests in the campaign's mix, beside Gaps. nil: any request may be
	// of any kind.
	Kinds []int `json:"kinds,omitempty"`
}

// NewTrace makes a trace of instants since any beginning. They must ascend. Before the first instant,
// and so between the last and the first when the trace is repeated, lies the mean distance. NewTrace
// uses the memory of the list.
func NewTrace(instants []time.Duration) (Trace, error) {
	if len(instants) == 0 {
		return Trace{}, errors.New("there are no instants")
	}
	if !slices.IsSorted(instants) {
		return Trace{}, errors.New("the instants do not ascend")
	}
	span := instants[len(instants)-1] - instants[0]
	if span > LongestTrace {
		return Trace{}, fmt.Errorf("the trace lasts %v, and at most %v is allowed", span, LongestTrace)
	}
	if span <= 0 {
		return Trace{}, fmt.Errorf("there is only one instant, of %d requests: a load needs two that differ", len(instants))
	}
	for i := len(instants) - 1; i > 0; i-- {
		instants[i] -= instants[i-1]
	}
	instants[0] = span / time.Duration(len(instants)-1)
	return Trace{Requests: len(instants), Length: span + instants[0], Gaps: instants}, nil
}

// TraceOf makes a trace of distances, after the last of which the first follows. It keeps the list.
func TraceOf(gaps []time.Duration) (Trace, error) {
	t := Trace{Requests: len(gaps), Gaps: gaps}
	for i, d := range gaps {
		if d < 0 || d > longestInterval || t.Length > LongestTrace-d {
			return Trace{}, fmt.Errorf("cannot wait %v, interval %d: it must lie between 0 and %v, and all together within %v", d, i+1, longestInterval, LongestTrace)
		}
		t.Length += d
	}
	if t.Length == 0 {
		return Trace{}, errors.New("cannot make a load of intervals that add up to 0")
	}
	return t, nil
}

// longestInterval bounds an interval, so that the conversion from microseconds cannot overflow.
const longestInterval = 24 * time.Hour

// LongestTrace bounds the length of a trace, so that instants cannot overflow.
const LongestTrace = 100 * 365 * 24 * time.Hour

// Rate returns the mean rate of the trace at its own speed, in requests per second. It has six
// significant digits, for people.
func (t Trace) Rate() float64 {
	rate := float64(t.Requests) / t.Length.Seconds()
	digits := math.Pow(10, 5-math.Floor(math.Log10(rate)))
	return math.Round(rate*digits) / digits
}

// slicesOfSample is the number of parts of which a sample consists.
const slicesOfSample = 10

// Sample returns the trace with at most that many requests. A longer trace becomes parts that are
// evenly spread over it, each with the bursts as they came. Rate and period are those of the whole
// trace.
func (t Trace) Sample(most int) Trace {
	if len(t.Gaps) <= most {
		return t
	}
	part := max(most/slicesOfSample, 1)
	t.Gaps, t.Sizes, t.Kinds = parts(t.Gaps, part), parts(t.Sizes, part), parts(t.Kinds, part)
	return t
}

// parts returns slicesOfSample evenly spread parts of a list, of that length each. An empty list has
// none.
func parts[T any](list []T, length int) []T {
	if len(list) == 0 {
		return nil
	}
	sample := make([]T, 0, length*slicesOfSample)
	for i := range slicesOfSample {
		from := i * (len(list) - length) / (slicesOfSample - 1)
		sample = append(sample, list[from:from+length]...)
	}
	return sample
}
