package guided

import (
	"math"
	"slices"
	"time"

	"tuner/search"
	"tuner/search/queuesim"
)

// sizeBatches is how many batches a size of a service trial takes, with what goes before its window.
const sizeBatches = 5

// serviceParts is the part of the budget beyond which a batch takes too long to be measured: a size
// takes sizeBatches of them, and the smaller sizes as long again.
const serviceParts = 200

// beyondSD is the standard deviation of the logarithm of a batch's time for each doubling of the
// size beyond the last one that was measured, where the curve goes on as a line. In the recorded
// landscapes it is 0.07 (cnn) to 0.3 (mlp).
const beyondSD = 0.2

// longest is how long a batch may take to be measured, 0 without an end: a part of the budget,
// and no longer than any limit on a latency that the batch alone would break. The median may be
// that of smaller batches.
func (g *Guided) longest() time.Duration {
	longest := math.Inf(1)
	if budget := g.settings.Budget.Time; budget > 0 {
		longest = budget.Seconds() / serviceParts
	}
	for _, m := range g.models {
		if !m.bindsLatency() {
			continue
		}
		for _, limit := range m.limits {
			if limit.Max != nil {
				longest = min(longest, *limit.Max)
			}
		}
	}
	if math.IsInf(longest, 1) {
		return 0
	}
	return time.Duration(longest * float64(time.Second))
}

// complete is the service trial that goes on with a ready pool's curve before a load is put on
// the pool; false where there is nothing to go on with. An engine that was only priced has sizes
// that no trial asked for. A curve of an earlier campaign may end where a tighter limit or a
// smaller budget broke it off; it is measured anew, since the machine may have another pace
// today.
func (g *Guided) complete(p *pool) (search.Action, bool) {
	s, concurrency := p.service(), 1
	if s == &p.crowded {
		concurrency = p.instances
	}
	sizes := slices.DeleteFunc(g.sizes(p.maxBatch), func(size int) bool { return size <= s.last() || p.refuses(size) })
	if len(sizes) == 0 || !s.isOld && sizes[0] <= s.asked || !g.isBrief(s.curve().Time(sizes[0], 1, 1)) {
		return search.Action{}, false
	}
	if s.isOld {
		sizes = g.sizes(p.maxBatch)
	}
	return g.service(p, concurrency, sizes, "service times of larger batches"), true
}

// renew forgets a curve of an earlier campaign that a trial measures anew.
func (g *Guided) renew(s *service, t search.Trial) {
	if s.isOld && t.Sizes[0] <= s.sizes[0] && slices.Max(t.Sizes) > s.last() {
		*s = service{}
	}
}

// isBrief reports whether a batch that takes so many seconds is measured.
func (g *Guided) isBrief(seconds float64) bool {
	longest := g.longest()
	return longest == 0 || seconds <= longest.Seconds()
}

// brief is how many sizes of a curve, known or foreseen, are expected to be measured in a pool.
func (g *Guided) brief(p *pool, c queuesim.Curve) int {
	sizes := g.sizes(p.maxBatch)
	tooLong := func(size int) bool { return len(c.Sizes) > 0 && !g.isBrief(c.Time(size, 1, 1)) }
	if i := slices.IndexFunc(sizes, tooLong); i >= 0 {
		return max(i, 1)
	}
	return len(sizes)
}

// priced are the sizes of a service trial that prices an engine: the smallest two where the time
// is short, else all.
func (g *Guided) priced(p *pool) []int {
	sizes := g.sizes(p.maxBatch)
	if g.isHurried() {
		return sizes[:min(2, len(sizes))]
	}
	return sizes
}

// isHurried reports whether there is no time to put a load on an engine before all values of the
// engine knobs were tried: what these are expected to take is more than what is left for it.
func (g *Guided) isHurried() bool {
	budget, untried := g.settings.Budget.Time, g.untried()
	if budget == 0 || untried == 0 {
		return false
	}
	each := g.costs.launch.or(guessedLaunch) + time.Duration(len(g.sizes(g.largest)))*g.costs.size.or(guessedSize)
	cost := time.Duration(untried)*each + g.window() + g.costs.warmUp.or(guessedWarmUp)
	return g.costs.searched()+float64(cost)/float64(max(budget-g.costs.begun, 1)) > exploreShare
}

// untried is how many pools are to be opened until every value of an engine knob was tried, and
// the default's pool.
func (g *Guided) untried() int {
	n := 0
	if !g.base.isTried() {
		n++
	}
	if p, ok := g.byKey[search.Candidate{}.PoolKey()]; ok && p.instances > 1 && !p.isReady() && p.failure == "" {
		n++
	}
	known := g.experience()
	for i, base := range g.base.values {
		var values []search.Value
		for _, e := range g.engines {
			v := e.values[i]
			if _, isTried := known[i][v]; v != base && !isTried && !slices.Contains(values, v) && !isHopeless(e, known) {
				values = append(values, v)
			}
		}
		n += len(values)
	}
	return n
}

// beyond is the variance of the logarithm of a batch's time, where sizes were measured up to the
// last one only.
func beyond(batch, last int) float64 {
	if batch <= last || last == 0 {
		return 0
	}
	deviation := beyondSD * math.Log2(float64(batch)/float64(last))
	return deviation * deviation
}

// unknownOf is what the curve of an open pool leaves unknown of a cell that was not measured, as
// a variance. It is for what is stated: in the search every such cell would stay a challenger
// until it is measured.
func (g *Guided) unknownOf(c cell) float64 {
	batch := float64(max(c.batcher().queue.MaxBatch, 1))
	if inFlight, _ := g.demand(c.level); inFlight < batch {
		batch = inFlight
	}
	return beyond(int(batch), c.pool.service().last())
}
