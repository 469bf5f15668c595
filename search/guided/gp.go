package guided

import "math"

// How far a residual reaches: on the scale of the logarithms of load and batch size, and of the delay in full batches' times.
var reach = [...]float64{1.2, 0.7, 0.5}

// ownReach is how far a batcher's own residual reaches on the scale of the logarithm of the load.
const ownReach = 0.7

// spot is where a cell lies: cells of one pool are near to each other when their loads, batch sizes and delays are.
type spot struct {
	pool    int
	batcher int // within the pool
	at      [len(reach)]float64
}

// nearness is 1 for equal and 0 for distant spots of one pool.
func nearness(a, b spot) float64 {
	sum := 0.0
	for i, x := range a.at {
		d := (x - b.at[i]) / reach[i]
		sum += d * d
	}
	return math.Exp(-sum / 2)
}

// loadNearness is the same for the loads alone, which differ sooner.
func loadNearness(a, b spot) float64 {
	d := (a.at[0] - b.at[0]) / ownReach
	return math.Exp(-d * d / 2)
}

// sight is what was seen at a spot: a log residual, and which row of the errors' covariance is its own.
type sight struct {
	spot
	value float64
	row   int
}

// spread holds the standard deviations of the parts that a log residual is made of.
type spread struct {
	global float64 // common to all pools
	pool   float64 // common to a pool's cells
	smooth float64 // alike for near cells of a pool
	own    float64 // alike for near loads of a batcher alone
	cell   float64 // of a cell alone: where one request more makes a batch wait for a turn, no neighbour tells
}

// within is the covariance of two spots of one pool, less the global part.
func (s spread) within(a, b spot) float64 {
	if a == b { // what is asked most often, of every pool that was not started
		return s.pool*s.pool + s.smooth*s.smooth + s.own*s.own + s.cell*s.cell
	}
	c := s.pool*s.pool + s.smooth*s.smooth*nearness(a, b)
	if a.batcher == b.batcher {
		c += s.own * s.own * loadNearness(a, b)
	}
	return c
}

// process is a Gaussian process over cells that has learned from sights. Its kernel is
// global²·1 + [same pool]·(pool² + smooth²·RBF + own²·[same batcher]·RBF + cell²·[same cell]). Without the first term the pools would be independent, so each
// has a small covariance matrix of its own, and the global part is a mean with a normal prior, which is the same process
// (Rasmussen and Williams, Gaussian Processes for Machine Learning, §2.7). What the errors of two pools' sights have in common is left
// out of the means, and counted where two spots are compared.
type process struct {
	spread spread
	errors [][]float64    // covariance of the sights' errors
	blocks map[int]*block // by pool; only looked up
	// mean and variance of the global part.
	mean, variance float64
}

// block is a pool's part of a process.
type block struct {
	sights  []sight
	factor  [][]float64 // lower Cholesky factor of the sights' covariance
	ones    []float64   // inverse covariance · 1
	weights []float64   // inverse covariance · (values − global mean)
}

// fit conditions a process on sights, of each pool together, and returns the logarithm of their marginal likelihood, up to a constant.
func fit(pools [][]sight, errors [][]float64, s spread) (process, float64) {
	p := process{spread: s, errors: errors, blocks: make(map[int]*block, len(pools))}
	precision, sum, squares, logs := 1/(s.global*s.global), 0.0, 0.0, 0.0
	for _, sights := range pools {
		b := &block{sights: sights, factor: cholesky(covariances(sights, errors, s))}
		ones, values := make([]float64, len(sights)), make([]float64, len(sights))
		for i, seen := range sights {
			ones[i], values[i] = 1, seen.value
			logs += 2 * math.Log(b.factor[i][i])
		}
		b.ones, b.weights = solve(b.factor, ones), solve(b.factor, values)
		for i, seen := range sights {
			precision += b.ones[i]
			sum += b.weights[i]
			squares += b.weights[i] * seen.value
		}
		p.blocks[sights[0].pool] = b
	}
	p.mean, p.variance = sum/precision, 1/precision
	for _, sights := range pools {
		b := p.blocks[sights[0].pool]
		for i := range b.weights {
			b.weights[i] -= p.mean * b.ones[i]
		}
	}
	logs += math.Log(precision*s.global*s.global) + squares - sum*sum/precision
	return p, -logs / 2
}

func covariances(sights []sight, errors [][]float64, s spread) [][]float64 {
	k := make([][]float64, len(sights))
	for i, a := range sights {
		k[i] = make([]float64, i+1)
		for j, b := range sights[:i+1] {
			k[i][j] = s.within(a.spot, b.spot) + errors[a.row][b.row]
		}
	}
	return k
}

// The standard deviations that are tried, as multiples of the usual ones, and how surprising a factor of e is.
var multiples = [...]float64{1.0 / 3, 1, 3}

const surprise = 0.8

// learn fits the process with the standard deviations under which the sights are most likely, given that they are log-normal
// around the usual ones. A pool's part has a deviation beside that, which is known.
func learn(pools [][]sight, errors [][]float64, usual spread, pool float64) process {
	best, most := process{}, math.Inf(-1)
	for _, a := range multiples {
		for _, b := range multiples {
			for _, c := range multiples {
				p, likelihood := fit(pools, errors, spread{usual.global, math.Hypot(usual.pool*a, pool), usual.smooth * b, usual.own * c, usual.cell})
				for _, factor := range []float64{a, b, c} {
					likelihood -= math.Pow(math.Log(factor)/surprise, 2) / 2
				}
				if likelihood > most {
					best, most = p, likelihood
				}
			}
		}
	}
	return best
}

// residual is what a process expects at a spot.
type residual struct {
	mean, variance float64
	spot           spot
	block          *block    // nil in a pool without sights
	kinship        []float64 // covariances with the sights
	gain           []float64 // weights of the sights' values
	rest           float64   // weight of the global part's uncertainty
}

// at returns the residual expected at a spot.
func (p *process) at(x spot) residual {
	own := p.spread.within(x, x)
	b, ok := p.blocks[x.pool]
	if !ok {
		return residual{mean: p.mean, variance: own + p.variance, spot: x, rest: 1}
	}
	r := residual{mean: p.mean, spot: x, block: b, kinship: make([]float64, len(b.sights)), gain: make([]float64, len(b.sights)), rest: 1}
	for i, seen := range b.sights {
		k := p.spread.within(x, seen.spot)
		r.kinship[i], r.gain[i] = k, k
		r.mean += k * b.weights[i]
		r.rest -= k * b.ones[i]
	}
	solve(b.factor, r.gain)
	r.variance = max(own-dot(r.kinship, r.gain), 0) + r.rest*r.rest*p.variance
	return r
}

// covariance of two residuals.
func (p *process) covariance(a, b residual) float64 {
	c := a.rest * b.rest * p.variance
	switch {
	case a.spot.pool == b.spot.pool:
		c += p.spread.within(a.spot, b.spot) - dot(a.kinship, b.gain)
	case a.block != nil && b.block != nil: // of two pools that were measured in turn
		for i, x := range a.gain {
			errors := p.errors[a.block.sights[i].row]
			for j, y := range b.gain {
				c += x * y * errors[b.block.sights[j].row]
			}
		}
	}
	return c
}

// cholesky returns the lower factor of a positive definite matrix given by its lower triangle, in place. What rounding makes
// of a variance that is as good as zero is lifted to a tiny one.
func cholesky(a [][]float64) [][]float64 {
	const tiny = 1e-12
	for i, row := range a {
		for j := range i {
			row[j] = (row[j] - dot(row[:j], a[j][:j])) / a[j][j]
		}
		row[i] = math.Sqrt(max(row[i]-dot(row[:i], row[:i]), tiny))
	}
	return a
}

// forward replaces v by factor⁻¹·v.
func forward(factor [][]float64, v []float64) {
	for i, row := range factor {
		v[i] = (v[i] - dot(row[:i], v[:i])) / row[i]
	}
}

// solve returns (factor·factorᵀ)⁻¹·v, and changes v.
func solve(factor [][]float64, v []float64) []float64 {
	forward(factor, v)
	for i := len(v) - 1; i >= 0; i-- {
		for j := i + 1; j < len(v); j++ {
			v[i] -= factor[j][i] * v[j]
		}
		v[i] /= factor[i][i]
	}
	return v
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
