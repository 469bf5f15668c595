package colocation

import (
	"maps"
	"slices"
)

// SetCosts replaces the times of trials by better ones.
func (x *Search) SetCosts(c Costs) {
	x.settings.Costs = c
	x.next = nil
}

// Run says that the engine processes of a cell run without a trial: their service times were measured.
func (x *Search) Run(c Cell) {
	x.running, x.next = &c, nil
}

// Tell learns the outcome of a trial.
func (x *Search) Tell(o Outcome) {
	key := o.Trial.key()
	if x.trials[key]++; x.trials[key] == 1 {
		x.measured = append(x.measured, o.Trial.Cell)
	}
	x.running = &o.Trial.Cell
	x.outcomes = append(x.outcomes, o)
	x.learn(o.Trial.Cell)
	x.promote()
}

// learn reads the slowdowns of a cell.
func (x *Search) learn(c Cell) {
	x.settle(c)
	x.forget()
	for _, i := range x.models {
		x.read(i, c)
	}
	x.forget()
}

// Exclude drops a cell, which is never measured again and cannot lead: it fails, or misses a limit that
// no load cures.
func (x *Search) Exclude(c Cell) {
	x.excluded[c.key()] = true
	x.forget()
	x.promote()
}

// Break drops the options of an engine process of a model, which does not serve.
func (x *Search) Break(model int, pool string) {
	x.broken[poolKey{model, pool}] = true
	x.forget()
	x.promote()
}

// isOut reports whether a cell was dropped, itself or an engine process of it.
func (x *Search) isOut(c Cell) bool {
	return x.excluded[c.key()] || slices.ContainsFunc(x.models, func(i int) bool { return x.isBroken(i, c.Options[i]) })
}

func (x *Search) isBroken(model, option int) bool {
	return x.broken[poolKey{model, x.settings.Models[model].Options[option].Pool}]
}

// Revise replaces options of a model, by their indices, since more is known about their times. Earlier
// trials are read again.
func (x *Search) Revise(model int, options map[int]Option) {
	if len(options) == 0 {
		return
	}
	m := &x.settings.Models[model]
	m.Options = slices.Clone(m.Options)
	for i, o := range options {
		m.Options[i] = o
	}
	isRevised := func(option int) bool { _, is := options[option]; return is }
	maps.DeleteFunc(x.alone, func(k aloneKey, _ prediction) bool { return k.model == model && isRevised(k.option) })
	maps.DeleteFunc(x.shared, func(_ string, s sharedCell) bool { return isRevised(s.options[model]) })
	for i := range x.residuals {
		x.residuals[i] = residuals{deviations: x.settings.Tuning.Deviations}
	}
	x.forget()
	for _, c := range x.measured {
		x.learn(c)
	}
	x.promote()
}

// forget drops what follows from the outcomes so far.
func (x *Search) forget() {
	x.next, x.believed, x.rankings = nil, map[believedKey]slowdown{}, map[[2]int][]ranked{}
}
