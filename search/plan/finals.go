package plan

import (
	"fmt"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// takesTurns reports whether finals are measured in blocks of turns. A pause empties a queue, so that at a request rate it would hide that the queue
// grows. Where a block could not be measured in turns, no other is asked for.
func (p *Plan) takesTurns() bool {
	return p.settings.Turns && !p.settings.Space.Load.Rate && !p.isRefused
}

// final is the next action of the finals: on engine processes launched for them they measure what the decision depends on, which is the answer so far,
// what may be better, and the default. They follow the decision after each action; nothing else is kept between actions. They leave what is set
// aside, except for the first launch of the answer: nothing else matters as much.
func (p *Plan) final(d *decision, aside budgetPart) (search.Action, bool) {
	r := p.round(d)
	if p.settings.Budget == (search.Budget{}) && p.finals >= p.tuning.MostFinals {
		if r.may = nil; p.finals >= 2*p.tuning.MostFinals {
			return search.Action{}, false
		}
	}
	seats := p.trials(r.seats())
	if len(seats) == 0 {
		return search.Action{}, false
	}
	if len(seats) > 1 && p.takesTurns() {
		a := p.settings.Block(seats, p.tuning.Turns)
		if list := a.Trials(); p.affords(list[0], p.surcharge(list[1:]).plus(aside)) {
			a.Why = "finals: fresh launches in turns"
			return a, true
		}
	}
	alone := search.Action{Trial: p.leastMeasured(p.trials(r.alone(p.lastFinal()))), Why: "finals: a fresh launch by itself"}
	if p.affords(alone.Trial, aside) || !r.isNew {
		return alone, p.affords(alone.Trial, aside)
	}
	alone.Trial = p.trials(r.must)[0]
	return alone, p.affords(alone.Trial, budgetPart{})
}

// trials are the final trials of cells.
func (p *Plan) trials(cells []posterior.Cell) []search.Trial {
	var list []search.Trial
	for _, c := range cells {
		list = append(list, p.finalTrial(c.Candidate, c.Load.Level()))
	}
	return list
}

// leastMeasured is the trial whose cell has had the fewest final trials, of equals the one whose last is the longest ago: so they come in turn where
// one is measured after the other.
func (p *Plan) leastMeasured(trials []search.Trial) search.Trial {
	count := func(t search.Trial) (n, last int) {
		for i, e := range p.events {
			if e.Trial.Phase == search.PhaseFinal && e.Trial.Load == t.Load && e.Trial.Candidate.Key() == t.Candidate.Key() {
				n, last = n+1, i
			}
		}
		return n, last
	}
	return slices.MinFunc(trials, func(a, b search.Trial) int {
		n, last := count(a)
		m, later := count(b)
		if n != m {
			return n - m
		}
		return last - later
	})
}

// lastFinal is the configuration of the last final trial; before any, the default.
func (p *Plan) lastFinal() search.Candidate {
	for i := len(p.events) - 1; i >= 0; i-- {
		if t := p.events[i].Trial; t.Phase == search.PhaseFinal {
			return t.Candidate
		}
	}
	return search.Candidate{}
}

// finalWindows is how many windows a launch is used for: as many as it takes that three fifths of the time are windows. A
// dearer launch is worth more of them (Kalibera and Jones, 2013: repeat most where the costs are least).
func (p *Plan) finalWindows() int {
	launch := p.costs.launches.all.or(search.GuessedLaunch) + p.costs.serving.warmUp.or(search.GuessedWarmUp)
	n := math.Round(p.tuning.WindowsPerLaunch * launch.Seconds() / (p.tuning.Longer * p.settings.Window).Seconds())
	return min(max(int(n), 1), search.MostWindows)
}

// finalTrial is a trial with long windows on a fresh launch.
func (p *Plan) finalTrial(c search.Candidate, level float64) search.Trial {
	t := p.settings.Trial(c, level, search.PhaseFinal)
	t.Windows = p.finalWindows()
	t.Window *= p.tuning.Longer
	t.Fresh = true
	return t
}

// round is what the finals may measure next: nothing where no more is worth it.
type round struct {
	must []posterior.Cell // the answer and the default until they are confirmed, each on verdict.Confirmed launches
	may  []posterior.Cell // what may change the answer, or make the gain over the default more certain, what is worth most first
	with posterior.Cell   // the answer, which is measured beside these
	// isNew says that the answer, the first that must be measured, was never measured on a launch of its own.
	isNew bool
}

// seats are the cells of a block of turns.
func (r round) seats() []posterior.Cell {
	list := slices.Clone(r.must)
	for _, c := range append([]posterior.Cell{r.with}, r.may...) {
		if len(r.must)+len(r.may) > 0 && len(list) < search.MostSeats && !slices.ContainsFunc(list, c.Is) {
			list = append(list, c)
		}
	}
	return list
}

// alone are the cells of which one is measured by itself, the first unless another had fewer final trials. The answer may move from trial to
// trial: so that it does not keep the default waiting, the two come in turn.
func (r round) alone(last search.Candidate) []posterior.Cell {
	switch {
	case len(r.must) > 1 && last.Key() != r.must[1].Candidate.Key():
		return r.must[1:]
	case len(r.must) > 0:
		return r.must[:1]
	}
	return append(slices.Clip(r.may[:min(1, len(r.may))]), r.with)
}

// round is the next one.
func (p *Plan) round(d *decision) round {
	if p.settings.Elsewhere {
		if list := p.newcomers(); len(list) > 0 {
			return round{must: list, with: list[0], isNew: true}
		}
	}
	v := d.verdict
	answer := v.Answer()
	if answer == nil || answer.IsBroken {
		return round{}
	}
	r := round{with: answer.Cell, isNew: answer.Fresh == 0}
	if answer.Fresh < verdict.Confirmed {
		r.must = append(r.must, answer.Cell)
	}
	base := v.Default
	if answer.Candidate.IsDefault() || v.Nearest != nil || base != nil && base.IsBroken {
		base = nil // there is nothing to compare with
	}
	if base != nil && freshOf(v, base.Candidate) < verdict.Confirmed {
		r.must = append(r.must, base.Cell)
	}
	if len(r.must) == 0 && p.isEnough(v) {
		return round{}
	}
	contest := p.contestOf(d)
	r.may = contest.rivals(p.tuning.WorthIt)
	if base != nil && answer.Gain != nil && p.isVague(*answer.Gain) && freshOf(v, base.Candidate) < p.tuning.BaseLaunches {
		r.may = slices.Insert(r.may, min(1, len(r.may)), p.bestOf(d, base))
	}
	if contest.isOpen() {
		r.may = append(r.may, answer.Cell)
	}
	return r
}

// isVague reports whether the gain over the default is known less precisely than a reader wants.
func (p *Plan) isVague(gain measure.Estimate) bool {
	return (gain.Hi-gain.Lo)/2 > p.tuning.Precise*gain.Value
}

// freshOf is on how many fresh launches a configuration was measured, whatever the load: its best load may move.
func freshOf(v verdict.Verdict, c search.Candidate) int {
	n := 0
	for _, x := range v.Choices {
		if x.Candidate.Key() == c.Key() {
			n += x.Fresh
		}
	}
	return n
}

// bestOf is where a configuration goes on that is to be compared at its best: at another load where that may be better by so much that
// the comparison is not precise.
func (p *Plan) bestOf(d *decision, c *verdict.Choice) posterior.Cell {
	if others := p.contestOfLoads(d, c).rivals(p.tuning.Precise); len(others) > 0 {
		return others[0]
	}
	return c.Cell
}

// isEnough reports whether nothing else is better by more than the user cares for.
func (p *Plan) isEnough(v verdict.Verdict) bool {
	return p.settings.Until > 0 && v.Nearest == nil && v.More <= p.settings.Until
}

// enough says why a campaign ends in which isEnough.
func (p *Plan) enough() string {
	return fmt.Sprintf("nothing else is better by more than %.3g %%", p.settings.Until*100)
}
