package packing

import (
	"cmp"
	"math"
	"slices"
)

// problem is a division that is sought, among the models with a load.
type problem struct {
	models []Model
	cores  int
	order  []int // indices of the models with a load, in an order that depends neither on names nor on the list
}

func newProblem(models []Model, cores int) problem {
	p := problem{models: models, cores: max(cores, 0)}
	for i, m := range models {
		if m.Load > 0 {
			p.order = append(p.order, i)
		}
	}
	slices.SortStableFunc(p.order, func(a, b int) int {
		x, y := models[a], models[b]
		return cmp.Or(cmp.Compare(x.Load, y.Load), slices.Compare(x.Highest, y.Highest))
	})
	return p
}

// divide returns the division with the largest sum of values over the models.
func (p problem) divide(value func(m Model, cores int) float64) Division {
	d := Division{Cores: make([]int, len(p.models))}
	cores, _ := p.best(value, add)
	for k, i := range p.order {
		d.Cores[i] = cores[k]
	}
	d.Scale = scale(p.models, d.Cores)
	return d
}

// best returns the numbers of cores, in the problem's order, with the largest combined value of the
// models, and that value. A value may be −Inf. combine must not fall with either argument. Of equal
// values the one with the fewest cores counts.
func (p problem) best(value func(m Model, cores int) float64, combine func(a, b float64) float64) (cores []int, most float64) {
	cores = make([]int, len(p.order))
	if len(p.order) == 0 {
		return cores, math.Inf(1)
	}
	var before, after []float64          // best values of the models so far, by the number of cores at most
	taken := make([][]int, len(p.order)) // of these, the cores of the last model
	for k, i := range p.order {
		own := make([]float64, p.cores+1)
		for c := range own {
			own[c] = value(p.models[i], c)
		}
		before, after, taken[k] = after, make([]float64, p.cores+1), make([]int, p.cores+1)
		for c := range after {
			after[c] = math.Inf(-1)
			for n := range c + 1 {
				v := own[n]
				if k > 0 {
					v = combine(before[c-n], v)
				}
				if v > after[c] {
					after[c], taken[k][c] = v, n
				}
			}
		}
	}
	left := p.cores
	for k := len(cores) - 1; k >= 0; k-- {
		cores[k] = taken[k][left]
		left -= cores[k]
	}
	return cores, after[p.cores]
}

// conflict returns the fewest models that cannot keep their limits together. holds reports whether a
// model keeps its own at the scale on some cores.
func (p problem) conflict(scale float64, holds func(m Model, cores int) bool) *Conflict {
	needs := make([]int, len(p.models))
	for _, i := range p.order {
		needs[i] = p.models[i].needs(p.cores, holds)
		if needs[i] == 0 {
			return &Conflict{Models: []string{p.models[i].Name}, Needs: []int{0}, Cores: p.cores, Scale: scale}
		}
	}
	largest := slices.Clone(p.order)
	slices.SortStableFunc(largest, func(a, b int) int { return cmp.Compare(needs[b], needs[a]) })
	count, sum := 0, 0
	for count < len(largest) && sum <= p.cores {
		sum += needs[largest[count]]
		count++
	}
	named := slices.Sorted(slices.Values(largest[:count]))
	c := &Conflict{Cores: p.cores, Scale: scale}
	for _, i := range named {
		c.Models, c.Needs = append(c.Models, p.models[i].Name), append(c.Needs, needs[i])
	}
	return c
}

// add is a combination of values: their sum.
func add(a, b float64) float64 { return a + b }
