package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Arrivals yields the scheduled instants of an open loop, as durations since its beginning, in
// ascending order and without end. Next does not block. One goroutine calls it.
type Arrivals interface{ Next() time.Duration }

// The range of request rates in requests per second: from one request in eleven days to one in 100
// ns.
const (
	lowestRate  = 1e-6
	highestRate = 1e7
)

func checkRate(rate float64) error {
	if !(lowestRate <= rate && rate <= highestRate) { // NaN fails too
		return fmt.Errorf("cannot send %g requests per second: the rate must lie between %g and %g", rate, lowestRate, highestRate)
	}
	return nil
}

// Constant schedules requests at equal distances. rate is in requests per second.
func Constant(rate float64) (Arrivals, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	return &constantArrivals{rate: rate}, nil
}

type constantArrivals struct {
	rate float64
	n    float64
}

// Next multiplies instead of adding, so that rounding errors do not add up.
func (c *constantArrivals) Next() time.Duration {
	c.n++
	return time.Duration(c.n / c.rate * float64(time.Second))
}

// Poisson schedules requests as many independent users send them: the distances have an exponential
// distribution. rate is the mean in requests per second. The same seed gives the same schedule.
func Poisson(rate float64, seed uint64) (Arrivals, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	return &poissonArrivals{mean: float64(time.Second) / rate, random: rand.New(rand.NewPCG(seed, 0))}, nil
}

type poissonArrivals struct {
	mean   float64 // ns
	random *rand.Rand
	at     time.Duration
}

func (p *poissonArrivals) Next() time.Duration {
	p.at += time.Duration(p.random.ExpFloat64() * p.mean)
	return p.at
}

// Intervals schedules requests at the listed distances. After the last it starts again with the
// first. It keeps the list.
func Intervals(list []time.Duration) (Arrivals, error) {
	for i, d := range list {
		if d < 0 || d > longestInterval {
			return nil, fmt.Errorf("cannot wait %v, interval %d: it must lie between 0 and %v", d, i+1, longestInterval)
		}
	}
	if !slices.ContainsFunc(list, func(d time.Duration) bool { return d > 0 }) {
		return nil, errors.New("cannot make a load of intervals that add up to 0")
	}
	return &intervalArrivals{list: list}, nil
}

// longestInterval bounds an interval, so that the conversion from microseconds cannot overflow.
const longestInterval = 24 * time.Hour

type intervalArrivals struct {
	list []time.Duration
	next int
	at   time.Duration
}

func (i *intervalArrivals) Next() time.Duration {
	i.at += i.list[i.next]
	i.next = (i.next + 1) % len(i.list)
	return i.at
}

// ParseIntervals reads a file of intervals: one whole number of microseconds per line, as in
// perf_analyzer's --request-intervals. It skips empty lines. Errors name the line.
func ParseIntervals(r io.Reader) ([]time.Duration, error) {
	var list []time.Duration
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		us, err := strconv.ParseInt(text, 10, 64)
		if err != nil || us < 0 || us > longestInterval.Microseconds() {
			return nil, fmt.Errorf("line %d: %q is not an interval: want a whole number of microseconds, at most %d", n, text, longestInterval.Microseconds())
		}
		list = append(list, time.Duration(us)*time.Microsecond)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("there are no intervals: each line must hold a whole number of microseconds")
	}
	return list, nil
}
