// Package packing says how several models fit on one server: how its cores are divided among them,
// how far their traffic can grow with every limit kept, which model binds, and what separate servers
// would need.
//
// The largest scale s is the objective: every model carries s times its load within its limits. On
// divided cores each model has cores of its own, and package packing finds the best division by
// dynamic programming. On shared cores it simulates all models together (queuesim.Together).
//
// Where a model stands in a list, and its name, change nothing. A model without load takes no part.
// The package measures nothing and does not depend on strategies. The formulas and their sources are
// in docs/design/search.md.
package packing

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Model is a model's traffic, and what it carries on cores of its own.
type Model struct {
	Name string
	// Load at scale 1, in requests/s, or in requests in flight for a closed loop. 0: the model takes
	// no part.
	Load float64
	// Highest are the highest loads within the model's limits on 1, 2, … cores, in the unit of Load.
	// More cores than the list has carry as much as its last entry.
	Highest []Highest
}

// Highest is an estimate of a highest load.
type Highest struct {
	Load      float64 // median; 0: no load keeps the limits
	Deviation float64 // standard deviation of its natural logarithm; errors of two models are independent
}

// on returns the highest load on some cores.
func (m Model) on(cores int) Highest {
	if cores < 1 || len(m.Highest) == 0 {
		return Highest{}
	}
	return m.Highest[min(cores, len(m.Highest))-1]
}

// scale returns the logarithm of the scale up to which the model keeps its limits on some
// cores: −Inf if it cannot.
func (m Model) scale(cores int) float64 { return math.Log(m.on(cores).Load / m.Load) }

// carries returns the probability that the model keeps its limits at a scale, on some cores.
func (m Model) carries(scale float64, cores int) float64 {
	h := m.on(cores)
	z := math.Log(h.Load / (scale * m.Load))
	switch {
	case h.Deviation > 0 && h.Load > 0:
		return distuv.UnitNormal.CDF(z / h.Deviation)
	case z >= 0:
		return 1
	}
	return 0
}

// Division is a division of a server's cores among models.
type Division struct {
	// Cores are those of each model, in the models' order; 0 for a model without load. Cores that
	// help nobody are left over.
	Cores []int
	Scale float64 // every model keeps its limits at this multiple of its load; +Inf without any load
	// Binding is the index of the model that keeps the scale from growing, −1 without any load.
	Binding int
	// Holds is the probability that all models keep their limits at the scale, 0..1.
	Holds float64
}

// Divide returns the division with the largest scale, by the medians of the highest loads. It
// maximises the least of f(c)/load over the models, where their numbers c sum up to cores at most. Of
// several such divisions it is the one whose models have the most room above that scale, in the sum of
// logarithms. The error is a *Conflict if no division lets all models keep their limits at any load.
//
// It is exact. The best value of the first m models on c cores follows from that of the first m−1 on
// fewer (Bellman, Dynamic Programming, 1957, chapter 1, the allocation process). That takes O(M·C²).
func Divide(models []Model, cores int) (Division, error) {
	p := newProblem(models, cores)
	_, least := p.best(Model.scale, math.Min)
	if math.IsInf(least, -1) {
		return Division{}, p.conflict(0, func(m Model, c int) bool { return m.on(c).Load > 0 })
	}
	return p.divide(func(m Model, c int) float64 {
		if s := m.scale(c); s >= least {
			return s
		}
		return math.Inf(-1)
	}), nil
}

// DivideSurely returns the division with the largest scale s that all models together keep with a
// probability of at least confidence (0..1): Π P(f(c) ≥ s·load) ≥ confidence. For a given s the best
// division is found as in Divide, and s is exact to a ten-thousandth. Binding is the model that least
// surely keeps its limits. The error is a *Conflict if even a thousandth of the scale of the medians is
// kept with less confidence.
func DivideSurely(models []Model, cores int, confidence float64) (Division, error) {
	d, err := Divide(models, cores)
	if err != nil || d.Binding < 0 {
		return d, err
	}
	p := newProblem(models, cores)
	chances := func(log float64) func(Model, int) float64 {
		return func(m Model, c int) float64 { return math.Log(m.carries(math.Exp(log), c)) }
	}
	isSure := func(log float64) bool {
		_, sum := p.best(chances(log), add)
		return sum >= math.Log(confidence)
	}
	const widest, step = 7, 1e-4 // of ln s: a factor of 1,000 both ways, and the resolution
	low, high := math.Log(d.Scale)-widest, math.Log(d.Scale)+widest
	if scale := math.Exp(low); !isSure(low) {
		return Division{}, p.conflict(scale, func(m Model, c int) bool { return m.carries(scale, c) >= confidence })
	}
	for high-low > step {
		if mid := (low + high) / 2; isSure(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	d = p.divide(chances(low))
	d.Scale = math.Exp(low)
	d.Binding, d.Holds = surely(models, d)
	return d, nil
}

// Weigh returns the division with the largest Σ weight · ln f(c): the objective of weights, with each
// model at the highest load within its limits. The weights are in the order of the models. A model with
// the weight 0 gets no cores. Scale and binding are those of the models with weight and load.
func Weigh(models []Model, weights []float64, cores int) (Division, error) {
	weighed := slices.Clone(models)
	for i := range weighed {
		weighed[i].Load = weights[i]
	}
	p := newProblem(weighed, cores)
	value := func(m Model, c int) float64 { return m.Load * math.Log(m.on(c).Load) }
	if _, sum := p.best(value, add); math.IsInf(sum, -1) {
		return Division{}, p.conflict(0, func(m Model, c int) bool { return m.on(c).Load > 0 })
	}
	d := p.divide(value)
	d.Scale, d.Binding = scale(models, d.Cores)
	_, d.Holds = surely(models, d)
	return d, nil
}

// Apart returns the least number of cores on which each model alone keeps its limits at a scale: what
// separate servers need. It is 0 for a model without load. The error is a *Conflict that names a model
// for which none of its numbers of cores suffices.
func Apart(models []Model, scale float64) ([]int, error) {
	cores := make([]int, len(models))
	for i, m := range models {
		if m.Load <= 0 {
			continue
		}
		n := m.needs(len(m.Highest), func(m Model, c int) bool { return m.on(c).Load >= scale*m.Load })
		if n == 0 {
			return nil, &Conflict{Models: []string{m.Name}, Needs: []int{0}, Cores: len(m.Highest), Scale: scale}
		}
		cores[i] = n
	}
	return cores, nil
}

// needs returns the least number of cores, up to most, with which something holds; 0 if none does.
func (m Model) needs(most int, holds func(m Model, cores int) bool) int {
	for c := 1; c <= most; c++ {
		if holds(m, c) {
			return c
		}
	}
	return 0
}

// scale returns the scale of a division with its binding model.
func scale(models []Model, cores []int) (scale float64, binding int) {
	scale, binding = math.Inf(1), -1
	for i, m := range models {
		if m.Load > 0 && cores[i] > 0 {
			if s := m.on(cores[i]).Load / m.Load; s < scale {
				scale, binding = s, i
			}
		}
	}
	return scale, binding
}

// surely returns the probability that a division's scale is kept, with the model that is least sure.
func surely(models []Model, d Division) (binding int, holds float64) {
	binding, holds = -1, 1
	least := math.Inf(1)
	for i, m := range models {
		if m.Load > 0 && d.Cores[i] > 0 {
			chance := m.carries(d.Scale, d.Cores[i])
			if holds *= chance; chance < least {
				least, binding = chance, i
			}
		}
	}
	return binding, holds
}

func add(a, b float64) float64 { return a + b }
