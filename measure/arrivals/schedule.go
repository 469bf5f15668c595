package arrivals

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// Schedule yields the instants at which requests are due, as durations since its beginning, in
// ascending order and without end. Next does not block. One goroutine calls it.
type Schedule interface{ Next() time.Duration }

// The range of request rates in requests per second: from one request in eleven days to one in 100
// ns.
const (
	LowestRate  = 1e-6
	HighestRate = 1e7
)

func checkRate(rate float64) error {
	if !(LowestRate <= rate && rate <= HighestRate) { // NaN fails too
		return fmt.Errorf("cannot send %g requests per second: the rate must lie between %g and %g", rate, LowestRate, HighestRate)
	}
	return nil
}

// Schedule returns a schedule of the pattern with a mean rate in requests per second. The same seed
// gives the same schedule. Constant patterns and traces have no randomness.
func (p Pattern) Schedule(rate float64, seed uint64) (Schedule, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("cannot schedule requests: %w", err)
	}
	switch p.Of() {
	case ConstantKind:
		return Constant(rate)
	case GammaKind:
		shape := 1 / (p.CV * p.CV)
		return &gamma{distances: distuv.Gamma{Alpha: shape, Beta: shape * rate, Src: rand.NewPCG(seed, 0)}}, nil
	case OnOffKind, CurveKind:
		return &modulated{segments: p.segments(), period: p.Period(rate).Seconds(), rate: rate, random: rand.New(rand.NewPCG(seed, 0))}, nil
	case TraceKind:
		if p.Trace == nil {
			return nil, errors.New("cannot replay a trace that was not read")
		}
		return &replay{gaps: p.Trace.Gaps, scale: p.Trace.Rate() / rate}, nil
	}
	return Poisson(rate, seed)
}

// Constant schedules requests at equal distances. rate is in requests per second.
func Constant(rate float64) (Schedule, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	return &constant{rate: rate}, nil
}

type constant struct {
	rate float64
	n    float64
}

// Next multiplies instead of adding, so that rounding errors do not add up.
func (c *constant) Next() time.Duration {
	c.n++
	return time.Duration(c.n / c.rate * float64(time.Second))
}

// Poisson schedules requests as many independent users send them: the distances have an exponential
// distribution. rate is the mean in requests per second. The same seed gives the same schedule.
func Poisson(rate float64, seed uint64) (Schedule, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	return &poisson{mean: float64(time.Second) / rate, random: rand.New(rand.NewPCG(seed, 0))}, nil
}

type poisson struct {
	mean   float64 // ns
	random *rand.Rand
	at     time.Duration
}

func (p *poisson) Next() time.Duration {
	p.at += time.Duration(p.random.ExpFloat64() * p.mean)
	return p.at
}

// gamma draws independent distances with a gamma distribution.
type gamma struct {
	distances distuv.Gamma // s
	at        float64      // s
}

func (g *gamma) Next() time.Duration {
	g.at += g.distances.Rand()
	return time.Duration(g.at * float64(time.Second))
}

// modulated is a Poisson process whose rate follows a curve, by the change of its clock: a Poisson
// process of the mean rate, whose time is the integral of the curve (Cinlar, Introduction to
// Stochastic Processes, 1975, §4.7).
type modulated struct {
	segments []segment
	period   float64 // s
	rate     float64 // mean, in requests/s
	random   *rand.Rand
	cycle    float64 // whole periods so far
	elapsed  float64 // s, integral of the factor since the beginning of the period
}

func (m *modulated) Next() time.Duration {
	m.elapsed += m.random.ExpFloat64() / m.rate
	for m.elapsed >= m.period {
		m.elapsed -= m.period
		m.cycle++
	}
	i := sort.Search(len(m.segments), func(i int) bool { return m.segments[i].before > m.elapsed }) - 1
	at := min(m.segments[i].at(m.elapsed-m.segments[i].before), m.period)
	return time.Duration((m.cycle*m.period + at) * float64(time.Second))
}

// replay repeats the distances of a trace, each longer by a factor.
type replay struct {
	gaps  []time.Duration
	scale float64
	next  int
	sum   time.Duration // of the gaps so far
}

// Next adds before it scales, so that rounding errors do not add up.
func (r *replay) Next() time.Duration {
	r.sum += r.gaps[r.next]
	r.next = (r.next + 1) % len(r.gaps)
	if r.scale == 1 {
		return r.sum
	}
	return time.Duration(float64(r.sum) * r.scale)
}
