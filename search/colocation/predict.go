package colocation

import (
	"math"

	"tuner/search/packing"
	"tuner/search/queuesim"
)

// aloneKey is an option of a model on some cores of its own.
type aloneKey struct{ model, option, cores int }

// prediction has an option's figures alone, by the logarithm of its load.
type prediction struct {
	margin
	busy []float64 // cores that it keeps busy, at the margin's loads
}

// predict returns the prediction of an option of a model alone on some cores.
func (x *Search) predict(model, option, cores int) prediction {
	m := x.settings.Models[model]
	o := m.Options[option]
	key := aloneKey{model, option, cores}
	if o.Curve.Path == 0 {
		key.cores = 0 // its curve has what its instances do to each other, and nothing else competes
	}
	if known, ok := x.alone[key]; ok {
		return known
	}
	var at, logs, busy []float64
	for _, level := range m.levels(o) {
		r := x.simulate([]int{model}, []int{option}, cores, func(int) float64 { return level / m.Load.Level() })[0]
		at, logs, busy = append(at, math.Log(level)), append(logs, m.logOf(r)), append(busy, r.Busy*float64(o.Curve.Threads))
		if logs[len(logs)-1] > math.Ln2 {
			break // beyond twice a limit nothing is asked
		}
	}
	x.alone[key] = prediction{newMargin(at, logs), busy}
	return x.alone[key]
}

// levels returns the loads at which a model is simulated alone.
func (m Model) levels(o Option) []float64 {
	var list []float64
	if m.Load.Concurrency > 0 {
		for n := 1.0; n < 1e4; n = math.Ceil(1.25 * n) {
			list = append(list, n)
		}
		return list
	}
	capacity := packing.Capacity(o.Batcher, o.Curve, m.Load.BatchSize)
	for _, share := range shares {
		list = append(list, share*capacity)
	}
	return list
}

// simulate returns the results of some models, each at a multiple of its load.
func (x *Search) simulate(models, options []int, cores int, scale func(k int) float64) []queuesim.Result {
	list := make([]queuesim.Model, len(models))
	for k, i := range models {
		m := x.settings.Models[i]
		o := m.Options[options[k]]
		list[k] = queuesim.Model{Batcher: o.Batcher, Curve: o.Curve, Load: m.Load.Times(scale(k)),
			Options: queuesim.Options{Requests: x.settings.Tuning.Requests, Seed: x.settings.Seed + uint64(i)}}
	}
	return x.simulator.Together(list, cores)
}

// margins returns the margins of a cell's models with a load, by the logarithm of the scale.
func (x *Search) margins(c Cell) []margin {
	if c.Cores == nil {
		return x.together(c)
	}
	list := make([]margin, len(x.models))
	for k, i := range x.models {
		list[k] = x.predict(i, c.Options[i], c.Cores[i]).shifted(-math.Log(x.settings.Models[i].Load.Level()))
	}
	return list
}

// offsets are the distances of the scales of a margin from the largest that each model keeps alone, in ln.
// around are those of simulated scales from the expected one.
var (
	offsets = [...]float64{-2, -1.2, -0.7, -0.4, -0.25, -0.15, -0.07, 0, 0.07, 0.15, 0.3}
	around  = [...]float64{-2, -1.2, -0.7, -0.4, -0.2, -0.08, 0, 0.08, 0.2}
)

// together returns the margins of a cell on shared cores. They are expected from each model alone until
// the cell is simulated.
//
// A model alone asks for the cores of all its instances, the others in the mean for those that they keep
// busy. Where that is more than there are, all have the same share (queuesim.Together does this from
// instant to instant), so the model is slower by a factor, as by a slowdown.
func (x *Search) together(c Cell) []margin {
	key := c.key()
	if known, ok := x.shared[key]; ok {
		return known.margins
	}
	alone := make([]prediction, len(x.models))
	limit := math.Inf(1) // ln of the scale up to which each alone keeps its limits
	for k, i := range x.models {
		alone[k] = x.predict(i, c.Options[i], x.settings.Cores)
		alone[k].margin = alone[k].shifted(-math.Log(x.settings.Models[i].Load.Level()))
		limit = min(limit, max(alone[k].highest(0), alone[k].at[0]))
	}
	cores := float64(x.settings.Cores)
	list := make([]margin, len(x.models))
	for k, i := range x.models {
		own := float64(x.settings.Models[i].Options[c.Options[i]].needs())
		var at, logs []float64
		for _, offset := range offsets {
			s := limit + offset
			asked := own
			for j := range alone {
				if j != k {
					asked += alone[j].busyAt(s)
				}
			}
			slow := math.Log(max(1, asked/cores) / max(1, own/cores))
			at, logs = append(at, s), append(logs, slow+alone[k].of(s+slow))
		}
		list[k] = newMargin(at, logs)
	}
	x.shared[key] = sharedCell{options: c.Options, margins: list, alone: limit}
	return list
}

// busyAt returns the cores that are kept busy at the logarithm of a load: in proportion to it below the
// first load, and as at the last one beyond.
func (p prediction) busyAt(load float64) float64 {
	last := len(p.at) - 1
	for i, at := range p.at {
		if load <= at {
			if i == 0 {
				return p.busy[0] * math.Exp(load-at)
			}
			return p.busy[i-1] + (p.busy[i]-p.busy[i-1])*(load-p.at[i-1])/(at-p.at[i-1])
		}
	}
	return p.busy[last]
}

// settle simulates a cell on shared cores with all its models, around the scale that is expected of it. Where no load is
// expected to keep the limits, it is the scale that each model carries alone: a trial of such a cell is read by the
// margins there, too.
func (x *Search) settle(c Cell) {
	key := c.key()
	if c.Cores != nil || x.shared[key].isSimulated {
		return
	}
	expected := x.scale(c, 0.5)
	if math.IsInf(expected, -1) {
		expected = x.shared[key].alone
	}
	options := make([]int, len(x.models))
	for k, i := range x.models {
		options[k] = c.Options[i]
	}
	at, logs := []float64{}, make([][]float64, len(x.models))
	for _, offset := range around {
		at = append(at, expected+offset)
		scale := math.Exp(expected + offset)
		for k, r := range x.simulate(x.models, options, x.settings.Cores, func(int) float64 { return scale }) {
			logs[k] = append(logs[k], x.settings.Models[x.models[k]].logOf(r))
		}
	}
	list := make([]margin, len(x.models))
	for k := range list {
		list[k] = newMargin(at, logs[k])
	}
	x.shared[key] = sharedCell{options: c.Options, margins: list, isSimulated: true}
}
