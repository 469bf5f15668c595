package measure

import (
	"fmt"
	"math"
)

// Load is the traffic that clients send to the server. It is a closed loop at a concurrency, an open
// loop at a request rate, or several models' traffic at a scale. Exactly one of the three is set.
type Load struct {
	Concurrency int     `json:"concurrency,omitempty" jsonschema:"minimum=1"`           // requests in flight, ≥ 1
	RequestRate float64 `json:"request_rate,omitempty" jsonschema:"exclusiveMinimum=0"` // requests per second, > 0
	// client batch: inferences per request, ≥ 1; 0 unknown, in figures of other programs
	BatchSize int `json:"batch_size,omitempty" jsonschema:"minimum=1"`
	// several models: the factor by which the traffic of each is multiplied, > 0
	Scale float64 `json:"scale,omitempty" jsonschema:"exclusiveMinimum=0"`
	// several models: the traffic of each at scale 1
	Mix Mix `json:"mix,omitzero"`
}

// Level returns the concurrency, the request rate or the scale.
func (l Load) Level() float64 {
	switch {
	case l.Scale > 0:
		return l.Scale
	case l.Concurrency > 0:
		return float64(l.Concurrency)
	}
	return l.RequestRate
}

// Times returns the load of one model multiplied by a scale. A concurrency is rounded up, so that a scale never stands for
// less traffic than it says.
func (l Load) Times(scale float64) Load {
	const exact = 1 - 1e-9 // 1.1 · 10 is a little above 11
	l.RequestRate *= scale
	l.Concurrency = int(math.Ceil(float64(l.Concurrency) * scale * exact))
	return l
}

// Of returns the load of one of several models: its share, multiplied by the scale (Times). It is the
// zero Load if the mix does not have the model, and the load itself without a mix.
func (l Load) Of(model string) Load {
	if l.Mix.IsZero() {
		return l
	}
	for _, s := range l.Mix.Parts() {
		if s.Model == model {
			return s.At(l.Scale)
		}
	}
	return Load{}
}

// String returns the load for people: "concurrency 8", "200 requests/s". It adds the client batch
// when it is not 1. Of several models it is the scale: "scale 1.5".
func (l Load) String() string {
	if l.Scale > 0 {
		return fmt.Sprintf("scale %.4g", l.Scale)
	}
	text := fmt.Sprintf("concurrency %d", l.Concurrency)
	if l.Concurrency == 0 {
		text = fmt.Sprintf("%.6g requests/s", l.RequestRate) // a part of scale 1.5 may have 32.209806638985086
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
	if l.Scale != 0 || !l.Mix.IsZero() {
		return l.checkMix()
	}
	if l.Concurrency < 0 || l.RequestRate < 0 || l.BatchSize < 0 || l.Concurrency > 0 && l.RequestRate > 0 {
		return fmt.Errorf("concurrency %d, request rate %g and client batch %d do not make a load", l.Concurrency, l.RequestRate, l.BatchSize)
	}
	return nil
}

// checkMix refuses a scale without models, models without a scale, and a load beside them.
func (l Load) checkMix() error {
	if !(l.Scale > 0) || l.Mix.IsZero() || l.Concurrency != 0 || l.RequestRate != 0 || l.BatchSize != 0 {
		return fmt.Errorf("scale %g of %q, concurrency %d, request rate %g and client batch %d do not make a load",
			l.Scale, l.Mix, l.Concurrency, l.RequestRate, l.BatchSize)
	}
	return nil
}
