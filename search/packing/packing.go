// Package packing says how several models fit on one server: how its cores are divided among them,
// how far their traffic can grow with every limit kept, what separate servers would need, and whose
// limits cannot hold together.
//
// The largest scale s is the objective: every model carries s times its load within its limits, on
// cores of its own. The package finds the best division by dynamic programming.
//
// Where a model stands in a list, and its name, change nothing. A model without load takes no part.
// The package measures nothing and does not depend on strategies. The formulas and their sources are
// in docs/design/search.md.
package packing

import (
	"math"
)

// Model is a model's traffic, and what it carries on cores of its own.
type Model struct {
	Name string
	// Load at scale 1, in requests/s, or in requests in flight for a closed loop. 0: the model takes
	// no part.
	Load float64
	// Highest are the highest loads within the model's limits on 1, 2, … cores, in the unit of Load; 0: no load
	// keeps the limits. More cores than the list has carry as much as its last entry.
	Highest []float64
}

// on returns the highest load on some cores.
func (m Model) on(cores int) float64 {
	if cores < 1 || len(m.Highest) == 0 {
		return 0
	}
	return m.Highest[min(cores, len(m.Highest))-1]
}

// scale returns the logarithm of the scale up to which the model keeps its limits on some
// cores: −Inf if it cannot.
func (m Model) scale(cores int) float64 { return math.Log(m.on(cores) / m.Load) }

// Division is a division of a server's cores among models.
type Division struct {
	// Cores are those of each model, in the models' order; 0 for a model without load. Cores that
	// help nobody are left over.
	Cores []int
	Scale float64 // every model keeps its limits at this multiple of its load; +Inf without any load
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
		return Division{}, p.conflict(0, func(m Model, c int) bool { return m.on(c) > 0 })
	}
	return p.divide(func(m Model, c int) float64 {
		if s := m.scale(c); s >= least {
			return s
		}
		return math.Inf(-1)
	}), nil
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
		n := m.needs(len(m.Highest), func(m Model, c int) bool { return m.on(c) >= scale*m.Load })
		if n == 0 {
			return nil, &Conflict{Models: []string{m.Name}, Needs: []int{0}, Cores: len(m.Highest), Scale: scale}
		}
		cores[i] = n
	}
	return cores, nil
}

// Fits returns nil if models keep their limits at a scale on cores of their own that the server has all together; else
// a *Conflict with the fewest models whose limits cannot hold.
func Fits(models []Model, cores int, scale float64) error {
	p := newProblem(models, cores)
	if _, least := p.best(Model.scale, math.Min); least >= math.Log(scale) {
		return nil
	}
	return p.conflict(scale, func(m Model, c int) bool { return m.on(c) >= scale*m.Load })
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

// scale returns the scale of a division.
func scale(models []Model, cores []int) float64 {
	scale := math.Inf(1)
	for i, m := range models {
		if m.Load > 0 && cores[i] > 0 {
			scale = min(scale, m.on(cores[i])/m.Load)
		}
	}
	return scale
}
