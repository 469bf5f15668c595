package guided

import (
	"cmp"
	"math"
	"slices"

	"tuner/stats"
)

// The noise of a measurement.
const (
	quietThroughput = 0.03 // standard deviation of the log of one second's throughput, while none is known
	quietOther      = 0.08 // the same of any other metric
	flaggedWeight   = 2    // factor of the variance of a trial with flags
	latest          = 200  // trials that the noise is learned from, the last ones
	closest         = 0.1  // s between trials, at least
)

// slower is the variance of what changes more slowly than a campaign lasts, by that of the drift which it sees. Machines' noise has much the same
// variance in each octave of time (flicker noise), and from a second to a campaign's minutes there are about as many as from these to a day.
const slower = 1

// noise is by how much trials of the same cell differ beyond what their windows' own intervals explain: standard deviations of the
// logarithm.
type noise struct {
	trial float64 // from trial to trial
	// drift is what changes slowly and is the same for all cells: neighbours on the machine, clocks, temperature. It is taken for an
	// Ornstein-Uhlenbeck process.
	drift   float64
	lasting float64 // s, time constant of the drift
}

// usualNoise is that of shared machines, where most of the noise is slow: neighbours come for tens of seconds, clocks wander for minutes.
func (m *model) usualNoise() noise {
	n := noise{trial: 0.04, drift: 0.03, lasting: 90}
	if m.isRate() {
		n.trial = 0.02
	}
	return n
}

// observation is what a trial tells of a metric.
type observation struct {
	cell     int     // number
	at       float64 // s
	log      float64
	variance float64 // that its windows explain
	withheld float64 // CPU time that others took from it (measure.Withheld)
}

// usualSlope is what a metric's logarithm is expected to change by with what others withhold: what is taken is lost.
func (m *model) usualSlope() float64 { return -m.direction() }

// learnWithheld finds what a metric's logarithm changes by with what others withhold, against the campaign's mean of that. It is a control variate: what is
// known to have disturbed a window is taken out of it. On machines with two virtual cores half to nine tenths of the variance between windows were this.
// noise is the variance of a trial that is expected.
func learnWithheld(list []observation, usual, noise float64) stats.Variate {
	cells, withheld, logs := make([]int, len(list)), make([]float64, len(list)), make([]float64, len(list))
	for i, o := range list {
		cells[i], withheld[i], logs[i] = o.cell, o.withheld, o.log
	}
	return stats.LearnVariate(cells, withheld, logs, usual, noise)
}

// tracks lists all cells that were measured, last those of a default outside of all pools.
func (g *Guided) tracks() []*track {
	var list []*track
	for _, p := range g.pools {
		list = append(list, p.tracks...)
	}
	return append(list, g.outside.tracks...)
}

// observe lists what all trials tell of a model's metric in the order of time, and numbers the cells. rate is what their windows vary by.
func (g *Guided) observe(k int, rate float64) ([]observation, map[*track]int) {
	var list []observation
	columns := map[*track]int{} // only looked up
	for _, t := range g.tracks() {
		for _, r := range t.readings {
			if math.IsNaN(r.logs[k]) {
				continue
			}
			if _, known := columns[t]; !known {
				columns[t] = len(columns)
			}
			list = append(list, observation{columns[t], r.at, r.logs[k], r.within(k, rate), r.withheld})
		}
	}
	slices.SortStableFunc(list, func(a, b observation) int { return cmp.Compare(a.at, b.at) })
	return list, columns
}

// rate is the variance of the log of a window of a second, by the windows' own intervals.
func (g *Guided) rate(k int) float64 {
	var rates []float64
	for _, t := range g.tracks() {
		for _, r := range t.readings {
			if r.errors[k] > 0 {
				rates = append(rates, r.errors[k]*r.errors[k]*r.seconds)
			}
		}
	}
	switch {
	case len(rates) > 0:
		return stats.Median(rates)
	case g.models[k].isRate():
		return quietThroughput * quietThroughput
	}
	return quietOther * quietOther
}

// within is the variance that a reading's windows explain: between its own interval's and that of windows of its length.
func (r reading) within(k int, rate float64) float64 {
	v := rate / r.seconds
	if r.errors[k] > 0 {
		v = (v + r.errors[k]*r.errors[k]) / 2
	}
	if r.isFlagged {
		v *= flaggedWeight
	}
	return v
}

// estimates are the mean logarithms of cells, freed of the drift as far as trials that were made in turn tell it.
type estimates struct {
	columns map[*track]int // the cells' numbers
	means   []float64
	errors  [][]float64 // covariance of the means' errors, less what they have in common
	level   float64     // variance of that: by how much the machine was faster in the campaign than it is in the long run

	noise    noise
	withheld stats.Variate // what others took is taken out by it
	rate     float64       // variance of the log of a window of a second, by the windows' own intervals
	list     []observation
	pulls    []float64 // Σ⁻¹ · (logarithms − means), by observation
}

// driftAt is the best prediction of the drift at a time, from the trials about it.
func (e estimates) driftAt(at float64) float64 {
	sum := 0.0
	for i, o := range e.list {
		sum += math.Exp(-math.Abs(at-o.at)/e.noise.lasting) * e.pulls[i]
	}
	return e.noise.drift * e.noise.drift * sum
}

// estimate joins all that trials tell of a model's metric.
func (g *Guided) estimate(k int) estimates {
	rate := g.rate(k)
	list, columns := g.observe(k, rate)
	usual := g.models[k].usualNoise()
	taken := learnWithheld(list, g.models[k].usualSlope(), usual.trial*usual.trial+usual.drift*usual.drift)
	for i := range list {
		list[i].log -= taken.Part(list[i].withheld)
		list[i].variance += taken.Doubt(list[i].withheld)
	}
	n, others := learnNoise(list, usual)
	e := n.estimate(list, len(columns))
	e.columns, e.withheld, e.rate = columns, taken, rate
	if len(others) > 0 {
		e.level = 0
	}
	for _, o := range others {
		e.level += o.probability * newChain(list, o.noise).level()
	}
	return e
}

// alternative is a noise that may be.
type alternative struct {
	noise
	probability float64
}

// learnNoise finds the noise under which the trials of cells that were measured again are most likely, whatever the cells' means
// (restricted maximum likelihood; Patterson and Thompson, Biometrika 58, 1971), given that it is log-normal around the usual one, and the
// probabilities of all that were tried: none where no cell was measured again.
func learnNoise(list []observation, usual noise) (best noise, tried []alternative) {
	list, cells := repeated(list[max(0, len(list)-latest):])
	if cells == 0 {
		return usual, nil
	}
	most, sum := math.Inf(-1), 0.0
	for _, a := range multiples {
		for _, b := range multiples {
			for _, c := range multiples {
				n := noise{usual.trial * a, usual.drift * b, usual.lasting * c}
				likelihood := n.likelihood(list, cells)
				for _, factor := range []float64{a, b, c} {
					likelihood -= math.Pow(math.Log(factor)/surprise, 2) / 2
				}
				tried = append(tried, alternative{n, likelihood})
				if likelihood > most {
					best, most = n, likelihood
				}
			}
		}
	}
	for i := range tried {
		tried[i].probability = math.Exp(tried[i].probability - most)
		sum += tried[i].probability
	}
	for i := range tried {
		tried[i].probability /= sum
	}
	return best, tried
}

// repeated keeps the observations of cells that have several, numbers these cells anew, and counts them.
func repeated(list []observation) (kept []observation, cells int) {
	count, number := map[int]int{}, map[int]int{} // only looked up
	for _, o := range list {
		count[o.cell]++
	}
	for _, o := range list {
		if count[o.cell] < 2 {
			continue
		}
		if _, known := number[o.cell]; !known {
			number[o.cell] = len(number)
		}
		o.cell = number[o.cell]
		kept = append(kept, o)
	}
	return kept, len(number)
}

// likelihood is the logarithm of the restricted likelihood of observations, up to a constant.
func (n noise) likelihood(list []observation, cells int) float64 {
	c := newChain(list, n)
	precision, sums := c.equations(list, cells)
	logs, x := make([]float64, len(list)), make([]float64, len(list))
	for i, o := range list {
		logs[i] = o.log
	}
	c.solve(logs, x)
	factor := cholesky(precision)
	forward(factor, sums)
	sum := c.logDet + dot(logs, x) - dot(sums, sums)
	for i, row := range factor {
		sum += 2 * math.Log(row[i])
	}
	return -sum / 2
}

// estimate finds the cells' means by generalized least squares.
func (n noise) estimate(list []observation, cells int) estimates {
	if len(list) == 0 {
		return estimates{level: n.drift * n.drift, noise: n}
	}
	c := newChain(list, n)
	precision, sums := c.equations(list, cells)
	factor := cholesky(precision)
	e := estimates{means: solve(factor, sums), errors: make([][]float64, cells), level: c.level(), noise: n, list: list, pulls: make([]float64, len(list))}
	rest := make([]float64, len(list))
	for i, o := range list {
		rest[i] = o.log - e.means[o.cell]
	}
	c.solve(rest, e.pulls)
	for i := range e.errors {
		unit := make([]float64, cells)
		unit[i] = 1
		e.errors[i] = solve(factor, unit)
		for j := range e.errors[i] {
			e.errors[i][j] -= e.level
		}
	}
	return e
}

// chain is the inverse of the covariance Σ = K + D of the trials' noise, the drift's and each trial's own, in a form that is applied in
// linear time: the drift is a Markov process, so that K⁻¹ is tridiagonal (Rue and Held, Gaussian Markov Random Fields, 2005, §2.1), and
// Σ⁻¹ = D⁻¹ − D⁻¹·(K⁻¹ + D⁻¹)⁻¹·D⁻¹.
type chain struct {
	weights       []float64 // D⁻¹
	pivots, links []float64 // K⁻¹ + D⁻¹ = L·diag(pivots)·Lᵀ, where L has ones, and links below them
	logDet        float64   // of Σ
}

func newChain(list []observation, n noise) chain {
	size := len(list)
	c := chain{weights: make([]float64, size), pivots: make([]float64, size), links: make([]float64, size)}
	variance := n.drift * n.drift
	keep := make([]float64, size+1) // squared correlation with the drift at the trial before; 0 at both ends
	for i := 1; i < size; i++ {
		keep[i] = math.Exp(-2 * max(list[i].at-list[i-1].at, closest) / n.lasting)
	}
	for i, o := range list {
		own := o.variance + n.trial*n.trial
		c.weights[i] = 1 / own
		c.pivots[i] = (1/(1-keep[i])+keep[i+1]/(1-keep[i+1]))/variance + 1/own
		if i > 0 {
			beside := -math.Sqrt(keep[i]) / (1 - keep[i]) / variance
			c.links[i] = beside / c.pivots[i-1]
			c.pivots[i] -= c.links[i] * beside
		}
		c.logDet += math.Log(variance * (1 - keep[i]) * own * c.pivots[i])
	}
	return c
}

// solve sets x to Σ⁻¹·v.
func (c chain) solve(v, x []float64) {
	for i := range v {
		x[i] = c.weights[i] * v[i]
		if i > 0 {
			x[i] -= c.links[i] * x[i-1]
		}
	}
	for i := len(v) - 1; i >= 0; i-- {
		x[i] /= c.pivots[i]
		if i+1 < len(v) {
			x[i] -= c.links[i+1] * x[i+1]
		}
	}
	for i := range v {
		x[i] = c.weights[i] * (v[i] - x[i])
	}
}

// equations are those of the cells' means: precision, of which this is the lower triangle, times means is sums.
func (c chain) equations(list []observation, cells int) (precision [][]float64, sums []float64) {
	precision, sums = make([][]float64, cells), make([]float64, cells)
	column, x := make([]float64, len(list)), make([]float64, len(list))
	for i := range precision {
		precision[i] = make([]float64, i+1)
	}
	for j := range cells {
		for i, o := range list {
			column[i] = 0
			if o.cell == j {
				column[i] = 1
			}
		}
		c.solve(column, x)
		for i, o := range list {
			sums[j] += x[i] * o.log
			if o.cell >= j {
				precision[o.cell][j] += x[i]
			}
		}
	}
	return precision, sums
}

// level is the variance of the drift's part in the best mean of all trials: with weights q = λ·Σ⁻¹·1 that mean has the variance
// λ = 1/(1ᵀ·Σ⁻¹·1), of which qᵀ·D·q is the trials' own.
func (c chain) level() float64 {
	ones, x := make([]float64, len(c.weights)), make([]float64, len(c.weights))
	for i := range ones {
		ones[i] = 1
	}
	c.solve(ones, x)
	sum, own := 0.0, 0.0
	for i, q := range x {
		sum, own = sum+q, own+q*q/c.weights[i]
	}
	return 1/sum - own/(sum*sum)
}
