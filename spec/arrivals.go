package spec

import (
	"tuner/measure/arrivals"
	"tuner/search"
	"tuner/spec/document"
	"tuner/spec/mixture"
	"tuner/spec/traffic"
)

// arrivals reads when the requests of a rate arrive.
func (r profileReader) arrivals(target *arrivals.Pattern) document.Field {
	return document.Field{Name: "arrivals", Read: func(v document.Value) {
		if p, ok := traffic.Read(v, r.file); ok {
			*target = p
		}
	}}
}

// checkOpen reports fields of an open loop in a closed one, and arrivals without a mean rate. given
// are the fields of the section load. isOpen is true for a load of requests that a schedule sends.
func checkOpen(given map[string]document.Value, p arrivals.Pattern) (isOpen bool) {
	_, closed := given["concurrency"]
	rate, open := given["request_rate"]
	if open && closed {
		rate.Fail(document.Error{Problem: "contradicts concurrency", Hint: "keep one of the two"})
	}
	pattern, has := given["arrivals"]
	switch {
	case has && closed:
		pattern.Fail(document.Error{Problem: "contradicts concurrency, whose requests follow the answers", Hint: "write request_rate in place of concurrency"})
	case has && !open && p.Kind != arrivals.TraceKind && pattern.Mistakes() == 0:
		pattern.Fail(document.Error{Problem: "needs a mean rate", Hint: "add request_rate: …"})
	}
	return open || has
}

// checkSizes reports a mix whose sizes are those of a trace, if the load has no trace. given are the
// fields of the section load.
func checkSizes(given map[string]document.Value, p arrivals.Pattern, of mixture.Mix) {
	inputs := given["inputs"]
	if of.OfTrace && p.Kind != arrivals.TraceKind && inputs.Mistakes() == 0 {
		inputs.Fail(document.Error{Problem: "has a mix with the sizes of a trace, and load.arrivals has no trace", Hint: "write load.arrivals: {trace: FILE}, in a profile or a gate"})
	}
}

// withTrace returns the axis with the trace of its arrivals, which facts have. A trace without a
// rate has its own.
func withTrace(a search.LoadAxis, trace *arrivals.Trace) search.LoadAxis {
	if a.Arrivals.Kind != arrivals.TraceKind {
		return a
	}
	a.Arrivals.Trace = trace
	if a.Levels == nil && trace != nil {
		a.Levels = []float64{trace.Rate()}
	}
	return a
}
