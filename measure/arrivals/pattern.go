// Package arrivals describes when the requests of an open loop are due: the pattern of a traffic
// over time, and traces of instants. Files and flags name a pattern. The load generator takes a
// schedule from it, and so does the simulation of the queue.
//
// The package sends nothing and has no clock: a schedule is a sequence of instants since its
// beginning, without end.
package arrivals

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Kind names a pattern, in YAML, flags and outputs.
type Kind string

// The kinds.
const (
	PoissonKind  Kind = "poisson"  // independent users: distances with an exponential distribution
	ConstantKind Kind = "constant" // equal distances
	GammaKind    Kind = "gamma"    // independent distances with a gamma distribution
	OnOffKind    Kind = "on_off"   // Poisson for a time, then nothing for a time
	CurveKind    Kind = "curve"    // Poisson with a rate that changes over time
	TraceKind    Kind = "trace"    // instants that were recorded
)

// Pattern is the course of a traffic over time. The zero value is Poisson. It is immutable.
type Pattern struct {
	Kind Kind
	// CV is the coefficient of variation of the distances, for gamma: 1 is Poisson, more is burstier.
	// vLLM's burstiness is 1/CV².
	CV      float64       `json:",omitempty"`
	On, Off time.Duration `json:",omitempty"` // on_off: times with and without requests
	Curve   []Point       `json:",omitempty"` // curve: from instant 0 on, ascending
	File    string        `json:",omitempty"` // trace: its path
	Trace   *Trace        `json:",omitempty"` // trace: its content; nil until it is read
}

// Point is a point of a rate curve. The rate is linear between two points. After the last point the
// curve begins again.
type Point struct {
	At     time.Duration
	Factor float64 // of the mean rate, up to a common factor; ≥ 0
}

// Bounds of patterns.
const (
	HighestCV     = 20.0
	ShortestPhase = time.Millisecond // of a pattern with a period
	LongestPeriod = 24 * time.Hour
	MostPoints    = 10_000 // of a curve
)

// Of returns the kind, Poisson for the zero value.
func (p Pattern) Of() Kind {
	if p.Kind == "" {
		return PoissonKind
	}
	return p.Kind
}

// IsPoisson reports whether the requests arrive as those of independent users do.
func (p Pattern) IsPoisson() bool { return p.Of() == PoissonKind }

// IsRandom reports whether a schedule depends on its seed.
func (p Pattern) IsRandom() bool { return p.Of() != ConstantKind && p.Of() != TraceKind }

// String describes the pattern for people: "gamma with cv 3", "on_off of 2s and 8s".
func (p Pattern) String() string {
	switch p.Of() {
	case GammaKind:
		return fmt.Sprintf("gamma with cv %g", p.CV)
	case OnOffKind:
		return fmt.Sprintf("on_off of %v and %v", p.On, p.Off)
	case CurveKind:
		return fmt.Sprintf("curve of %d points in %v", len(p.Curve), p.Curve[len(p.Curve)-1].At)
	case TraceKind:
		if p.Trace != nil {
			return fmt.Sprintf("trace of %d requests in %v", p.Trace.Requests, p.Trace.Length.Round(time.Millisecond))
		}
	}
	return string(p.Of())
}

// Period returns the time after which the pattern repeats at a mean rate in requests/s; 0 for a
// pattern without one. A trace that is replayed at another rate has another period.
func (p Pattern) Period(rate float64) time.Duration {
	switch p.Of() {
	case OnOffKind:
		return p.On + p.Off
	case CurveKind:
		return p.Curve[len(p.Curve)-1].At
	case TraceKind:
		if p.Trace == nil || rate <= 0 {
			return 0
		}
		return time.Duration(float64(p.Trace.Requests) / rate * float64(time.Second))
	}
	return 0
}

// HasPeriod reports whether the pattern repeats.
func (p Pattern) HasPeriod() bool {
	return p.Of() == OnOffKind || p.Of() == CurveKind || p.Of() == TraceKind
}

// Whole returns a length of a window at a mean rate: the given one, or as many whole periods as it
// needs. So a window sees each phase of the pattern equally long, wherever it begins.
func (p Pattern) Whole(length time.Duration, rate float64) time.Duration {
	period := p.Period(rate)
	if period <= 0 {
		return length
	}
	return max(1, (length+period-1)/period) * period
}

// Check returns an error for a pattern that makes no schedule. The file of a trace is not looked at.
func (p Pattern) Check() error {
	switch p.Of() {
	case PoissonKind, ConstantKind:
	case GammaKind:
		if !(p.CV > 0 && p.CV <= HighestCV) {
			return fmt.Errorf("the coefficient of variation %g must be above 0 and at most %g", p.CV, HighestCV)
		}
	case OnOffKind:
		if p.On < ShortestPhase || p.Off < ShortestPhase || p.On+p.Off > LongestPeriod {
			return fmt.Errorf("the times %v and %v must each be %v or more, and %v together at most", p.On, p.Off, ShortestPhase, LongestPeriod)
		}
	case CurveKind:
		return checkCurve(p.Curve)
	case TraceKind:
		if p.Trace != nil && (p.Trace.Requests < 1 || p.Trace.Length <= 0 || len(p.Trace.Gaps) == 0) {
			return errors.New("the trace has no requests")
		}
	default:
		return fmt.Errorf("%q is not a pattern of arrivals", p.Kind)
	}
	return nil
}

func checkCurve(curve []Point) error {
	if len(curve) < 2 || len(curve) > MostPoints {
		return fmt.Errorf("a curve needs 2 to %d points, and has %d", MostPoints, len(curve))
	}
	for i, point := range curve {
		switch {
		case !(point.Factor >= 0 && point.Factor <= 1e9):
			return fmt.Errorf("the factor %g at %v must be from 0 to 1e9", point.Factor, point.At)
		case i == 0 && point.At != 0:
			return fmt.Errorf("the curve begins at %v and must begin at 0s", point.At)
		case i > 0 && point.At < curve[i-1].At+ShortestPhase:
			return fmt.Errorf("the instant %v must follow %v by %v or more", point.At, curve[i-1].At, ShortestPhase)
		}
	}
	if !slices.ContainsFunc(curve, func(p Point) bool { return p.Factor > 0 }) {
		return errors.New("the curve has no factor above 0")
	}
	if last := curve[len(curve)-1].At; last > LongestPeriod {
		return fmt.Errorf("the curve lasts %v, and at most %v is allowed", last, LongestPeriod)
	}
	return nil
}

// segments returns the curve of a pattern with a period, as a factor of the mean rate.
func (p Pattern) segments() []segment {
	curve := p.Curve
	if p.Of() == OnOffKind {
		curve = []Point{{0, 1}, {p.On, 1}, {p.On, 0}, {p.On + p.Off, 0}}
	}
	var list []segment
	sum := 0.0
	for i, end := range curve[1:] {
		begin := curve[i]
		length := (end.At - begin.At).Seconds()
		if length == 0 { // a jump
			continue
		}
		list = append(list, segment{from: begin.At.Seconds(), before: sum, factor: begin.Factor, slope: (end.Factor - begin.Factor) / length})
		sum += length * (begin.Factor + end.Factor) / 2
	}
	mean := sum / curve[len(curve)-1].At.Seconds()
	for i := range list {
		s := &list[i]
		s.before, s.factor, s.slope = s.before/mean, s.factor/mean, s.slope/mean
	}
	return list
}

// segment is a part of a curve on which the rate is linear.
type segment struct {
	from          float64 // s since the beginning of the period
	before        float64 // integral of the factor up to there, in s
	factor, slope float64 // of the mean rate there, and its change in a second
}

// at returns the instant, in s, at which the integral has grown by y within the segment.
func (s segment) at(y float64) float64 {
	root := math.Sqrt(max(0, s.factor*s.factor+2*s.slope*y))
	if s.factor+root <= 0 {
		return s.from
	}
	return s.from + 2*y/(s.factor+root)
}
