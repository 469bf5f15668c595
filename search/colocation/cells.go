package colocation

import (
	"cmp"
	"math"
	"slices"

	"tuner/search/packing"
)

// hope is the number of deviations by which an option is expected to be better than believed when the
// best ones are chosen.
const hope = 1.5

// ranked is a model's option on some cores, with the logarithm of its highest load.
type ranked struct {
	option          int
	median, hopeful float64
}

// cells lists the cells that may be measured next, each once, in a fixed order.
func (x *Search) cells() []Cell {
	list := cellSet{seen: map[string]bool{}}
	lead, leads := x.leader()
	if x.settings.IsDivided {
		for _, cores := range x.divisions(lead, leads) {
			x.addDivided(&list, cores)
		}
	}
	if x.settings.IsShared {
		x.addShared(&list, lead, leads)
	}
	if leads {
		for _, c := range x.neighbours(lead) {
			list.add(c)
		}
	}
	for _, c := range x.measured {
		list.add(c)
	}
	return slices.DeleteFunc(list.cells, x.isOut)
}

// cellSet is a list of cells without repetitions.
type cellSet struct {
	cells []Cell
	seen  map[string]bool
}

func (l *cellSet) add(c Cell) {
	if key := c.key(); !l.seen[key] {
		l.seen[key] = true
		l.cells = append(l.cells, c)
	}
}

// ranking lists a model's options on some cores, the most hopeful first. 0 cores: shared.
func (x *Search) ranking(model, cores int) []ranked {
	if known, ok := x.rankings[[2]int{model, cores}]; ok {
		return known
	}
	own, m := cmp.Or(cores, x.settings.Cores), x.settings.Models[model]
	var list []ranked
	for o, option := range m.Options {
		if !option.fits(cores) || x.isBroken(model, o) {
			continue
		}
		believed, p := x.believe(model, site{option: o, cores: cores, nodes: x.leastNodes(cores), pool: option.Pool, doubt: option.Doubt}), x.predict(model, o, own)
		r := ranked{o, p.highest(believed.mean), p.highest(believed.mean - hope*believed.deviation)}
		if !math.IsInf(r.hopeful, -1) {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(b.hopeful, a.hopeful) })
	x.rankings[[2]int{model, cores}] = list
	return list
}

// divisions returns the best divisions by what is believed and by what is hoped, the leader's, and those
// that move one core of these from one model to another.
func (x *Search) divisions(lead Cell, leads bool) [][]int {
	var list [][]int
	add := func(cores []int) {
		if !slices.ContainsFunc(list, func(known []int) bool { return slices.Equal(known, cores) }) {
			list = append(list, cores)
		}
	}
	for _, isHopeful := range []bool{false, true} {
		if d, err := packing.Divide(x.packed(isHopeful), x.settings.Cores); err == nil {
			add(x.spread(d.Cores))
		}
	}
	if leads && lead.Cores != nil {
		add(lead.Cores)
	}
	for _, cores := range list {
		for _, moved := range x.moves(cores) {
			add(moved)
		}
	}
	return list
}

// highest returns the highest load of a model's best option on some cores; 0 if it has none.
func (x *Search) highest(model, cores int, isHopeful bool) float64 {
	best := math.Inf(-1)
	for _, r := range x.ranking(model, cores) {
		if isHopeful {
			best = max(best, r.hopeful)
		} else {
			best = max(best, r.median)
		}
	}
	return math.Exp(best)
}

// spread gives cores that are left over to the models in turn: they may have an option for them. A model whose
// cores then straddle NUMA nodes has its turn only if no other model's stay on one.
func (x *Search) spread(cores []int) []int {
	cores = slices.Clone(cores)
	left := x.settings.Cores
	for _, c := range cores {
		left -= c
	}
	for k := 0; left > 0 && len(x.models) > 0; k, left = k+1, left-1 {
		next, least := 0, math.MaxInt
		for step := range x.models {
			i := x.models[(k+step)%len(x.models)]
			cores[i]++
			if n := x.straddling(cores); n < least {
				next, least = i, n
			}
			cores[i]--
		}
		cores[next]++
	}
	return cores
}

// moves returns the divisions that move one core from one model to another.
func (x *Search) moves(cores []int) [][]int {
	var list [][]int
	for _, from := range x.models {
		for _, to := range x.models {
			if from != to && cores[from] > 1 {
				moved := slices.Clone(cores)
				moved[from]--
				moved[to]++
				list = append(list, moved)
			}
		}
	}
	return list
}

// addDivided adds, on a division, the cell of each model's best option, and those with another of the
// best options of one model.
func (x *Search) addDivided(list *cellSet, cores []int) {
	base := Cell{Options: make([]int, len(x.settings.Models)), Cores: cores}
	best := map[int][]ranked{}
	for _, i := range x.models {
		if best[i] = x.ranking(i, cores[i]); len(best[i]) == 0 {
			return
		}
		base.Options[i] = slices.MaxFunc(best[i], func(a, b ranked) int { return cmp.Compare(a.median, b.median) }).option
	}
	list.add(base)
	for _, i := range x.models {
		for _, r := range best[i][:min(x.settings.Tuning.Best, len(best[i]))] {
			list.add(base.with(i, r.option))
		}
	}
}

// with returns the cell with another option of a model.
func (c Cell) with(model, option int) Cell {
	c.Options = slices.Clone(c.Options)
	c.Options[model] = option
	return c
}

// addShared adds the most promising cells on shared cores: each option of each model beside the best of
// the others, which are chosen in turn.
func (x *Search) addShared(list *cellSet, lead Cell, leads bool) {
	base := lead
	if !leads || lead.Cores != nil {
		base = Cell{Options: make([]int, len(x.settings.Models))}
		for _, i := range x.models {
			best := x.ranking(i, 0)
			if len(best) == 0 {
				return
			}
			base.Options[i] = best[0].option
		}
	}
	found := cellSet{seen: map[string]bool{}}
	scales := map[string]float64{}
	x.contend(base)
	for _, i := range x.models {
		for _, r := range x.contenders[i] {
			c := base.with(i, r.option)
			for _, other := range x.models {
				if other != i {
					c = x.respond(c, other)
				}
			}
			found.add(c)
			scales[c.key()] = x.expected(c)
		}
	}
	slices.SortStableFunc(found.cells, func(a, b Cell) int { return cmp.Compare(scales[b.key()], scales[a.key()]) })
	for _, c := range found.cells[:min(x.settings.Tuning.Best*len(x.models), len(found.cells))] {
		list.add(c)
	}
}

// contend selects the options of each model that are considered on shared cores: those with the highest
// loads alone, and of those that carry the scale of a cell, the ones that keep the fewest cores busy. The
// fewer models there are, the more options.
func (x *Search) contend(base Cell) {
	x.contenders = make([][]ranked, len(x.settings.Models))
	most := max(x.settings.Tuning.Contenders/len(x.models), 1)
	scale := x.expected(base)
	for _, i := range x.models {
		all := x.ranking(i, 0)
		if len(all) <= most {
			x.contenders[i] = all
			continue
		}
		load := scale + math.Log(x.settings.Models[i].Load.Level())
		chosen := slices.Clone(all[:most/2])
		thrifty := slices.DeleteFunc(slices.Clone(all[most/2:]), func(r ranked) bool { return r.hopeful < load })
		busy := func(r ranked) float64 { return x.predict(i, r.option, x.settings.Cores).busyAt(load) }
		slices.SortStableFunc(thrifty, func(a, b ranked) int { return cmp.Compare(busy(a), busy(b)) })
		x.contenders[i] = append(chosen, thrifty[:min(most-len(chosen), len(thrifty))]...)
	}
}

// respond returns the cell with the best option of a model beside the others'.
func (x *Search) respond(c Cell, model int) Cell {
	best, most := c, math.Inf(-1)
	for _, r := range x.contenders[model] {
		other := c.with(model, r.option)
		if s := x.expected(other); s > most {
			best, most = other, s
		}
	}
	return best
}

// neighbours returns the cells that differ from one in one knob of one model.
func (x *Search) neighbours(c Cell) []Cell {
	var list []Cell
	for _, i := range x.models {
		options := x.settings.Models[i].Options
		for o, option := range options {
			if option.fits(c.of(i)) && differences(option.Knobs, options[c.Options[i]].Knobs) == 1 {
				list = append(list, c.with(i, o))
			}
		}
	}
	return list
}

// differences returns the number of knobs in which two options differ.
func differences(a, b []int) int {
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}
