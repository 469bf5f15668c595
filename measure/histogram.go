package measure

import (
	"encoding/json"
	"fmt"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The range and the resolution of latency histograms: 1 µs to 10 min with three significant digits.
const (
	lowestLatency  = int64(time.Microsecond)
	highestLatency = int64(10 * time.Minute)
	latencyDigits  = 3
)

// Histogram is an immutable latency distribution in HdrHistogram's compressed encoding: small in memory and in the
// journal, decoded only to be merged. The zero value is the empty distribution.
type Histogram struct{ encoded string }

// NewHistogram encodes latencies.
func NewHistogram(latencies []time.Duration) (Histogram, error) {
	if len(latencies) == 0 {
		return Histogram{}, nil
	}
	h := hdr.New(lowestLatency, highestLatency, latencyDigits)
	for _, l := range latencies {
		if err := h.RecordValue(min(max(int64(l), lowestLatency), highestLatency)); err != nil {
			return Histogram{}, fmt.Errorf("cannot record latency %v: %w", l, err)
		}
	}
	encoded, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		return Histogram{}, fmt.Errorf("cannot encode latency histogram: %w", err)
	}
	return Histogram{string(encoded)}, nil
}

// Merge decodes distributions into one HdrHistogram of nanoseconds.
func Merge(parts ...Histogram) (*hdr.Histogram, error) {
	sum := hdr.New(lowestLatency, highestLatency, latencyDigits)
	for _, p := range parts {
		if p.encoded == "" {
			continue
		}
		h, err := hdr.Decode([]byte(p.encoded))
		if err != nil {
			return nil, fmt.Errorf("cannot decode latency histogram: %w", err)
		}
		sum.Merge(h)
	}
	return sum, nil
}

// MarshalJSON writes the base64 text of the encoding.
func (h Histogram) MarshalJSON() ([]byte, error) { return json.Marshal(h.encoded) }

// UnmarshalJSON reads what MarshalJSON wrote, and refuses text that is not an encoded histogram.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("cannot read latency histogram: %w", err)
	}
	if _, err := Merge(Histogram{text}); err != nil {
		return err
	}
	h.encoded = text
	return nil
}
