package race

import (
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/mat"

	"tuner/search"
)

// Settings with small effects are not screened one by one. A design changes all of them at once,
// each in half of its runs, so every window has information about every setting. For the same
// number of windows, the effects are several times more precise. (Fractional factorial designs:
// Box, Hunter and Hunter, Statistics for Experimenters, ch. 6.)

// designRuns is the number of a design's runs. designFreedom is the number of effects that they can
// distinguish.
const (
	designRuns    = 8
	designFreedom = designRuns - 1
)

// hopelessEffect is the log effect below which an assignment is left out of the product.
const hopelessEffect = -0.02

// design is a heat that changes several blocks at once. Its first run is the candidate with which
// it began.
type design struct {
	blocks []block
	// levels: per block: the assignments, as candidates that differ from the first one in that
	// block only
	levels [][]search.Candidate
	runs   []search.Candidate
	chosen [][]int // per run: the level of each block
}

// newDesign plans the runs of the blocks around the best candidate so far. Runs with the same
// session are merged.
func (r *Race) newDesign(blocks []block) *design {
	d := &design{}
	for _, b := range blocks {
		levels := r.legal(append([]search.Candidate{r.best}, b.variations(r.best)...))
		if len(levels) > 1 {
			d.blocks, d.levels = append(d.blocks, b), append(d.levels, levels)
		}
	}
	column := 1
	columns := make([][]int, len(d.blocks))
	for i, levels := range d.levels {
		if len(levels) == 2 && column < designRuns {
			columns[i] = hadamard(column)
			column++
			continue
		}
		columns[i] = r.balanced(len(levels))
	}
	for run := range designRuns {
		c := r.best
		chosen := make([]int, len(d.blocks))
		for i, b := range d.blocks {
			chosen[i] = columns[i][run]
			c = assign(c, change{block: b, settings: assignment(d.levels[i][chosen[i]], b)})
		}
		if list := r.legal([]search.Candidate{c}); len(list) == 1 && !slices.ContainsFunc(d.runs, func(o search.Candidate) bool { return o.Key() == list[0].Key() }) {
			d.runs, d.chosen = append(d.runs, list[0]), append(d.chosen, chosen)
		}
	}
	return d
}

// hadamard returns a column of the Hadamard matrix of order 8. Half of the runs have level 0,
// including the first. Columns 1 to 7 are orthogonal to each other.
func hadamard(column int) []int {
	levels := make([]int, designRuns)
	for run := range levels {
		levels[run] = bits.OnesCount(uint(run&column)) % 2
	}
	return levels
}

// balanced uses each of n levels about equally often, in random order. The first run has level 0.
func (r *Race) balanced(n int) []int {
	levels := make([]int, designRuns)
	for run := range levels {
		levels[run] = run % n
	}
	r.random.Shuffle(designRuns-1, func(i, j int) { levels[i+1], levels[j+1] = levels[j+1], levels[i+1] })
	return levels
}

// changes returns the effects of each block's levels. It omits hopeless levels, and those whose
// every run failed.
func (d *design) changes(h *heat) [][]change {
	effects := d.effects(h)
	var list [][]change
	for i, b := range d.blocks {
		var options []change
		for level, c := range d.levels[i] {
			effect := effects[i][level]
			if level == 0 || effect >= hopelessEffect {
				options = append(options, change{block: b, settings: assignment(c, b), effect: effect})
			}
		}
		list = append(list, options)
	}
	return list
}

// effectSpread is the expected standard deviation of effects, and runSpread that of a run's
// deviation from the additive model, both of logs. Together with the noise of the windows they
// determine how far effects are drawn towards zero (ridge regression). Without this, noise would
// look like a gain. They also determine effects if a design has fewer runs than effects.
const (
	effectSpread = 0.04
	runSpread    = 0.01
)

// ridge returns the weight of "no effect" relative to one run.
func (d *design) ridge(h *heat) float64 {
	noise := h.noise() / float64(max(1, h.round))
	return (runSpread*runSpread + noise) / (effectSpread * effectSpread)
}

// effects returns the levels' log effects against level 0, by block, from the additive model that
// fits the runs best. A level without any measured run has −∞.
func (d *design) effects(h *heat) [][]float64 {
	effects := make([][]float64, len(d.blocks))
	first := make([]int, len(d.blocks)) // column of each block's level 1
	columns := 1                        // the mean
	for i, levels := range d.levels {
		effects[i], first[i] = make([]float64, len(levels)), columns
		for level := 1; level < len(levels); level++ {
			effects[i][level] = math.Inf(-1)
		}
		columns += len(levels) - 1
	}
	normal, right := mat.NewSymDense(columns, nil), mat.NewVecDense(columns, nil)
	for j, ridge := 1, d.ridge(h); j < columns; j++ {
		normal.SetSym(j, j, ridge)
	}
	seen := make([]bool, columns)
	for run, c := range d.runs {
		e := h.entrant(c)
		if e == nil || len(e.scores) == 0 || e.failure != "" {
			continue
		}
		in := []int{0}
		for i, level := range d.chosen[run] {
			if level > 0 {
				in = append(in, first[i]+level-1)
			}
		}
		y := math.Log(e.ratio(h.base()).Value)
		for _, j := range in {
			seen[j] = true
			right.SetVec(j, right.AtVec(j)+y)
			for _, k := range in {
				if k >= j {
					normal.SetSym(j, k, normal.At(j, k)+1)
				}
			}
		}
	}
	var solved mat.VecDense
	if !seen[0] || solved.SolveVec(normal, right) != nil {
		return effects
	}
	for i := range d.blocks {
		for level := 1; level < len(d.levels[i]); level++ {
			if j := first[i] + level - 1; seen[j] {
				effects[i][level] = solved.AtVec(j)
			}
		}
	}
	return effects
}
