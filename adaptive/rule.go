package adaptive

import (
	"math"
	"time"
)

// Tick is the time between two decisions.
const Tick = time.Second

// longest is the longest time that the rule looks back, in ticks: about a minute. A traffic that changes
// faster than that within the interval of its rate is not told apart.
const longest = 64

// certain is the factor of the deviation of a count within which it lies with 95 %.
const certain = 1.96

// leastPause and mostPause bound the time for which the rule leaves out a configuration to which the server could not
// change, in ticks. A load that fails takes cores and memory from requests.
const (
	leastPause = 60
	mostPause  = 3600
)

// Rule decides which configuration serves. It is for one goroutine.
//
// At each tick it looks back over 1, 2, 4 … ticks. The rate lies within the interval that the counted
// requests allow, with the variance that the counts of ticks have. A longer look back narrows the interval,
// as long as it agrees with all shorter ones: where the intervals have no rate in common, the rate has
// changed meanwhile (Lepski, Theory of Probability and its Applications 35(3), 1991). If a configuration is
// certainly better at all of these rates (Table.Better), the rule changes to it. Rates at which no one is
// certainly better change nothing, so the width of the measured intervals is the hysteresis. A change
// that takes a time to load must be justified by at least as long a look back. A configuration to which the
// server could not change is left out for a minute, and for twice as long after each further failure, up to an hour.
type Rule struct {
	table   *Table
	current int
	counts  [longest]float64
	next    int     // of counts
	seen    int     // ticks so far, at most longest
	ticks   int     // so far
	pauses  []pause // by configuration
}

// pause is the time for which a configuration is left out, in ticks.
type pause struct{ length, end int }

// New makes the rule of a table that has been checked (Parse). It begins with the table's static
// configuration.
func New(t *Table) *Rule {
	return &Rule{table: t, current: t.index(t.Static), pauses: make([]pause, len(t.Configurations))}
}

// Current returns the name of the configuration that serves.
func (r *Rule) Current() Configuration { return r.table.Configurations[r.current] }

// Observe takes the requests that came in a tick. It returns the configuration that is to serve from now
// on, and whether that is another one. The caller says with Stay that it does not.
func (r *Rule) Observe(requests int) (c Configuration, isOther bool) {
	r.ticks++
	r.counts[r.next] = float64(max(requests, 0))
	r.next = (r.next + 1) % longest
	r.seen = min(r.seen+1, longest)
	if !r.table.Pays {
		return r.Current(), false
	}
	dispersion := r.dispersion()
	low, high := 0.0, math.Inf(1)
	for ticks := 1; ticks <= r.seen; ticks *= 2 {
		least, most := interval(r.sum(ticks), float64(ticks)*Tick.Seconds(), dispersion)
		if low, high = max(low, least), min(high, most); low > high {
			break
		}
		better := r.table.Better(r.current, low, high, r.isOut)
		if better != r.current && r.table.loads(r.current, better) <= time.Duration(ticks)*Tick {
			r.current = better
			return r.Current(), true
		}
	}
	return r.Current(), false
}

// Stay says that the server could not change to the current configuration, and serves the one with a name.
func (r *Rule) Stay(name string) {
	p := &r.pauses[r.current]
	if r.ticks > p.end+mostPause {
		p.length = 0 // the failures before it are over
	}
	p.length = min(max(2*p.length, leastPause), mostPause)
	p.end = r.ticks + p.length
	if i := r.table.index(name); i >= 0 {
		r.current = i
	}
}

// Rests reports whether the server could not change to the current configuration, and should not try again yet.
func (r *Rule) Rests() bool { return r.isOut(r.current) }

func (r *Rule) isOut(c int) bool { return r.ticks < r.pauses[c].end }

// sum returns the requests of the last ticks.
func (r *Rule) sum(ticks int) (sum float64) {
	for k := 1; k <= ticks; k++ {
		sum += r.counts[(r.next-k+longest)%longest]
	}
	return sum
}

// dispersion returns the variance of the counts over their mean, around the line between neighbours, at
// least 1: half of the mean square of the differences of consecutive ticks has no trend in it (von
// Neumann, The Annals of Mathematical Statistics 12(4), 1941).
func (r *Rule) dispersion() float64 {
	squares, sum := 0.0, 0.0
	for k := 1; k < r.seen; k++ {
		a, b := r.counts[(r.next-k+longest)%longest], r.counts[(r.next-k-1+longest)%longest]
		squares += (a - b) * (a - b) / 2
		sum += (a + b) / 2
	}
	if sum == 0 {
		return 1
	}
	return max(1, squares/sum)
}

// interval returns the 95 % interval of a rate by a count within seconds: the rates λ with |n − λs| ≤ z
// √(d λ s), which are those of the score interval (Rao), also for a count of 0.
func interval(count, seconds, dispersion float64) (low, high float64) {
	half := certain * certain * dispersion / 2
	root := math.Sqrt(half * (2*count + half))
	return max(0, count+half-root) / seconds, (count + half + root) / seconds
}
