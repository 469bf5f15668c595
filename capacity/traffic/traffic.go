// Package traffic reads the requests that a service gets over days: a trace of instants, a table of
// rates, a curve over a day, or words. It makes one thing of them, the number of requests in each sync
// period of the autoscaler. Package capacity simulates replicas under it.
//
// Package measure/arrivals has the patterns of a load test, and reads traces of instants. A load test
// lasts minutes at one mean rate; a traffic lasts days and has its own rates.
package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/capacity/autoscaler"
	"tuner/internal/durable"
	"tuner/measure/arrivals"
	patterns "tuner/spec/traffic"
)

// Step is the length of a step. Nothing changes the number of replicas within it.
const Step = autoscaler.SyncPeriod

// Bounds of a traffic.
const (
	Shortest    = time.Minute
	Longest     = 92 * 24 * time.Hour // a quarter of a year, 530,000 steps
	HighestRate = arrivals.HighestRate
	day         = 24 * time.Hour
	week        = 7 * day
)

// Traffic is the requests of a service over time. It is immutable.
type Traffic struct {
	Text     string    // what it is, for people
	Requests []float64 // number of requests in each step
	// Dispersion is the variance of the number of requests in a second over its mean, within a step:
	// 1 for independent users, more for bursts. It is at least 1.
	Dispersion float64
	IsDrawn    bool // Requests are drawn around rates, as a Poisson process makes them
}

// Length returns the time that the traffic covers.
func (t Traffic) Length() time.Duration { return time.Duration(len(t.Requests)) * Step }

// Total returns the number of all requests.
func (t Traffic) Total() (sum float64) {
	for _, n := range t.Requests {
		sum += n
	}
	return sum
}

// Times returns a traffic with a multiple of the requests, at the same instants.
func (t Traffic) Times(factor float64) Traffic {
	requests := make([]float64, len(t.Requests))
	for i, n := range t.Requests {
		requests[i] = factor * n
	}
	t.Requests = requests
	return t
}

// Mean returns the mean rate in requests/s.
func (t Traffic) Mean() float64 { return t.Total() / t.Length().Seconds() }

// Peak returns the highest rate of a step in requests/s.
func (t Traffic) Peak() (rate float64) {
	for _, n := range t.Requests {
		rate = max(rate, n/Step.Seconds())
	}
	return rate
}

// PerDay is the number of steps of a day.
const PerDay = int(day / Step)

// Days returns the parts of the traffic that are a day long; the last one may be shorter. A rest below
// a quarter of a day belongs to the day before it.
func (t Traffic) Days() (parts [][]float64) {
	for rest := t.Requests; len(rest) > 0; {
		n := min(PerDay, len(rest))
		if len(rest)-n < PerDay/4 {
			n = len(rest)
		}
		parts, rest = append(parts, rest[:n]), rest[n:]
	}
	return parts
}

// Forms describes what Read takes.
const Forms = `a CSV file with a column timestamp (a request a row), or with timestamp and rate or requests; ` +
	`a curve of rates over a day such as "{0h: 20, 9h: 400, 18h: 300, 24h: 20}"; or words such as "peak 400/s, office hours"`

// Read reads a traffic: the name of a file, a curve, or words. The seed draws requests around rates.
// Errors name the file and the row, and what to write instead.
func Read(text string, seed uint64) (Traffic, error) {
	t, err := read(strings.TrimSpace(text), seed)
	if err == nil && t.Total() == 0 {
		return Traffic{}, fmt.Errorf("traffic %q has no requests", text)
	}
	return t, err
}

func read(text string, seed uint64) (Traffic, error) {
	switch {
	case strings.HasPrefix(text, "{"):
		return readCurve(text, seed)
	case isWords(text):
		return readWords(text, seed)
	}
	f, err := os.Open(text)
	if err != nil {
		return Traffic{}, fmt.Errorf("cannot read traffic %q: %w; it must be %s", text, durable.Cause(err), Forms)
	}
	defer f.Close()
	t, err := Parse(f, seed)
	if err != nil {
		return Traffic{}, arrivals.InFile(text, err)
	}
	return t, nil
}

// rates are the rates of steps in requests/s, before requests are drawn.
type rates []float64

// traffic draws the requests of independent users around the rates.
func (r rates) traffic(text string, seed uint64) Traffic {
	t := Traffic{Text: text, Requests: make([]float64, len(r)), Dispersion: 1, IsDrawn: true}
	source := rand.NewPCG(seed, 0)
	for i, rate := range r {
		if mean := rate * Step.Seconds(); mean > 0 {
			t.Requests[i] = distuv.Poisson{Lambda: mean, Src: source}.Rand()
		}
	}
	return t
}

// readCurve reads a curve of rates over a day, in the form of a load's arrivals.
func readCurve(text string, seed uint64) (Traffic, error) {
	p, err := patterns.Parse("traffic", fmt.Sprintf("{curve: %s}", text))
	if err != nil {
		return Traffic{}, err
	}
	last := p.Curve[len(p.Curve)-1] // a curve has two points at least
	period := int(last.At / Step)
	switch {
	case period == 0:
		return Traffic{}, fmt.Errorf("--traffic %q: the curve lasts %v, and must last %v at least", text, last.At, Shortest)
	case slices.ContainsFunc(p.Curve, func(x arrivals.Point) bool { return x.Factor > HighestRate }):
		return Traffic{}, fmt.Errorf("--traffic %q: a rate is above %g requests/s", text, HighestRate)
	}
	r := make(rates, 0, int(week/Step))
	for len(r) < int(week/Step) {
		at := time.Duration(len(r)%period)*Step + Step/2
		r = append(r, rateAt(p.Curve, at))
	}
	return r.traffic(fmt.Sprintf("a curve of %d rates in %v, for a week", len(p.Curve), last.At), seed), nil
}

// rateAt returns the rate of a curve, which is linear between its points.
func rateAt(curve []arrivals.Point, at time.Duration) float64 {
	for i := 1; i < len(curve); i++ {
		a, b := curve[i-1], curve[i]
		if at <= b.At {
			return a.Factor + (b.Factor-a.Factor)*float64(at-a.At)/float64(b.At-a.At)
		}
	}
	return curve[len(curve)-1].Factor
}

// isRate reports whether a rate is a number from 0 to the highest one.
func isRate(rate float64) bool { return rate >= 0 && rate <= HighestRate && !math.IsNaN(rate) }
