package measure

import "fmt"

// Load is the traffic that clients send to the server: a closed loop at a concurrency, or an open
// loop at a request rate. Exactly one of concurrency and request rate is set.
type Load struct {
	Concurrency int     `json:"concurrency,omitempty" jsonschema:"minimum=1"`           // requests in flight, ≥ 1
	RequestRate float64 `json:"request_rate,omitempty" jsonschema:"exclusiveMinimum=0"` // requests per second, > 0
	// client batch: inferences per request, ≥ 1; 0 unknown, in figures of other programs
	BatchSize int `json:"batch_size,omitempty" jsonschema:"minimum=1"`
}

// Level returns the concurrency or the request rate.
func (l Load) Level() float64 {
	if l.Concurrency > 0 {
		return float64(l.Concurrency)
	}
	return l.RequestRate
}

// String returns the load for people: "concurrency 8", "200 requests/s". It adds the client batch
// when it is not 1.
func (l Load) String() string {
	text := fmt.Sprintf("concurrency %d", l.Concurrency)
	if l.Concurrency == 0 {
		text = fmt.Sprintf("%g requests/s", l.RequestRate)
	}
	if l.BatchSize > 1 {
		text += fmt.Sprintf(" × batch %d", l.BatchSize)
	}
	return text
}

// Bounded returns a metric's estimate as people and programs are told it. In an open loop a server
// answers no more than the clients offer, so the interval of a rate ends there, and at the rate itself if
// more were answered than the schedule has on average. The other end stays, so that its distance still
// is the error of the figure. Statistics take the estimate as it is.
func (l Load) Bounded(m Metric, e Estimate) Estimate {
	if info, _ := m.Info(); info.Unit == InferPerSecond && l.RequestRate > 0 {
		e.Hi = max(e.Value, min(e.Hi, l.RequestRate*float64(max(1, l.BatchSize))))
	}
	return e
}

// Check refuses a load with both a concurrency and a request rate, and negative values. It accepts
// the zero Load, which stands for an unknown load.
func (l Load) Check() error {
	if l.Concurrency < 0 || l.RequestRate < 0 || l.BatchSize < 0 || l.Concurrency > 0 && l.RequestRate > 0 {
		return fmt.Errorf("concurrency %d, request rate %g and client batch %d do not make a load", l.Concurrency, l.RequestRate, l.BatchSize)
	}
	return nil
}
