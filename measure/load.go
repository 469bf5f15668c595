package measure

import "fmt"

// Load is what the clients do to the server: a closed loop at a concurrency, or an open loop at a request rate. Exactly
// one of Concurrency and RequestRate is set.
type Load struct {
	Concurrency int     `json:"concurrency,omitempty" jsonschema:"minimum=1"`           // requests in flight, ≥ 1
	RequestRate float64 `json:"request_rate,omitempty" jsonschema:"exclusiveMinimum=0"` // requests per second, > 0
	BatchSize   int     `json:"batch_size,omitempty" jsonschema:"minimum=1"`            // client batch: inferences per request, ≥ 1; 0 unknown, in figures of other programs
}

// Level is the load's number on its axis: concurrency or request rate.
func (l Load) Level() float64 {
	if l.Concurrency > 0 {
		return float64(l.Concurrency)
	}
	return l.RequestRate
}

// String prints the load for people: "concurrency 8", "200 requests/s", with the client batch when it is not 1.
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

// Check refuses what is no load: two in one, or less than nothing. None at all is a trial's that was not told.
func (l Load) Check() error {
	if l.Concurrency < 0 || l.RequestRate < 0 || l.BatchSize < 0 || l.Concurrency > 0 && l.RequestRate > 0 {
		return fmt.Errorf("concurrency %d, request rate %g and client batch %d are no load", l.Concurrency, l.RequestRate, l.BatchSize)
	}
	return nil
}
