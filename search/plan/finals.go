package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// takesTurns reports whether finals are measured in blocks of turns. A pause empties a queue, so at
// a request rate it would hide that the queue grows. After a block that could not be measured in
// turns, no other is tried.
func (p *Plan) takesTurns() bool {
	return p.settings.Turns && !p.settings.Space.Load.Rate && !p.isRefused
}

// final returns the next action of the finals. On fresh engine processes they measure the cells on
// which the decision depends: the answer so far, its possible rivals, and the default. They follow
// the decision after each action, and keep no other state. They respect the reserve `aside`, except
// for the first launch of the answer, which matters most.
func (p *Plan) final(d *decision, aside budgetPart) (search.Action, bool) {
	r := p.round(d)
	if most := p.mostFinals(); p.settings.Budget.Time == 0 && p.finals >= most {
		if r.may = nil; p.finals >= 2*most {
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

// mostFinals returns the number of finals that end a campaign without a budget of time. A choice between
// cells at the edge of a limit may stay open whatever is measured. Under a budget of trials, which may be
// no more than a bound far away, the finals take as many trials as all else has taken.
func (p *Plan) mostFinals() int {
	if p.settings.Budget.Trials == 0 {
		return p.tuning.MostFinals
	}
	return max(p.tuning.MostFinals, p.costs.trials-p.finals)
}

// trials returns the final trials of cells.
func (p *Plan) trials(cells []posterior.Cell) []search.Trial {
	var list []search.Trial
	for _, c := range cells {
		list = append(list, p.finalTrial(c.Candidate, c.Load.Level()))
	}
	return list
}

// leastMeasured returns the trial whose cell has the fewest final trials; between equals, the one
// whose last is the oldest. So cells alternate when trials are measured one after the other.
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

// lastFinal returns the configuration of the last final trial; before any, the default.
func (p *Plan) lastFinal() search.Candidate {
	for i := len(p.events) - 1; i >= 0; i-- {
		if t := p.events[i].Trial; t.Phase == search.PhaseFinal {
			return t.Candidate
		}
	}
	return search.Candidate{}
}

// finalWindows returns the number of windows per launch with which three fifths of the time are
// windows. A more expensive launch deserves more windows (Kalibera and Jones, 2013: repeat most
// where the costs are least).
func (p *Plan) finalWindows() int {
	launch := p.costs.launches.all.or(search.GuessedLaunch) + p.costs.serving.warmUp.or(search.GuessedWarmUp)
	n := math.Round(p.tuning.WindowsPerLaunch * launch.Seconds() / p.settings.Space.Load.Longest(p.tuning.Longer*p.settings.Window).Seconds())
	return min(max(int(n), 1), search.MostWindows)
}

// finalWindow returns the length of a window of a final at a level.
func (p *Plan) finalWindow(level float64) time.Duration {
	return p.settings.Space.Load.Whole(p.tuning.Longer*p.settings.Window, level)
}

// finalTrial returns a trial with long windows on a fresh launch.
func (p *Plan) finalTrial(c search.Candidate, level float64) search.Trial {
	t := p.settings.Trial(c, level, search.PhaseFinal)
	t.Windows = p.finalWindows()
	t.Window = p.finalWindow(level)
	t.Fresh = true
	return t
}

// round holds the cells that the finals may measure next. It is empty if no cell is worth a trial.
type round struct {
	// must: the answer and the default until they are confirmed, each on verdict.Confirmed launches,
	// and the default until there is a gain over it
	must []posterior.Cell
	// may: cells that may change the answer, or make the gain over the default more certain, the
	// most valuable first
	may  []posterior.Cell
	with posterior.Cell // the answer, which is measured together with these
	// isNew means that the answer, the first cell in must, has never been measured on a fresh
	// launch.
	isNew bool
}

// seats returns the cells of a block of turns.
func (r round) seats() []posterior.Cell {
	list := slices.Clone(r.must)
	for _, c := range append([]posterior.Cell{r.with}, r.may...) {
		if len(r.must)+len(r.may) > 0 && len(list) < search.MostSeats && !slices.ContainsFunc(list, c.Is) {
			list = append(list, c)
		}
	}
	return list
}

// alone returns the candidates for a single trial. It takes the first, unless another has fewer
// final trials. The answer may change from trial to trial, so the answer and the default alternate.
func (r round) alone(last search.Candidate) []posterior.Cell {
	switch {
	case len(r.must) > 1 && last.Key() != r.must[1].Candidate.Key():
		return r.must[1:]
	case len(r.must) > 0:
		return r.must[:1]
	}
	return append(slices.Clip(r.may[:min(1, len(r.may))]), r.with)
}

// round returns the next round.
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
		base = nil // nothing to compare with
	}
	if base != nil {
		if cell, ok := p.comparison(d, base); ok {
			r.must = append(r.must, cell)
		}
	}
	switch {
	case len(r.must) == 0 && (p.isHurried || p.isEnough(v)):
		return round{}
	case p.isHurried:
		return r
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

// comparison returns the cell of the default that must be measured, if there is one: its best so far
// until it had enough fresh launches. Where none of its measured loads is likely to keep the limits,
// the answer has no gain over it. So another load is measured that may keep them. Each is
// measured once, so this ends.
func (p *Plan) comparison(d *decision, base *verdict.Choice) (posterior.Cell, bool) {
	if d.verdict.Unseen != nil {
		if unseen := p.contestOfUnseen(d).rivals(0); len(unseen) > 0 {
			return unseen[0], true
		}
	}
	return base.Cell, freshOf(d.verdict, base.Candidate) < verdict.Confirmed
}

// isVague reports whether the gain over the default is less precise than a reader wants.
func (p *Plan) isVague(gain measure.Estimate) bool {
	return (gain.Hi-gain.Lo)/2 > p.tuning.Precise*gain.Value
}

// freshOf returns the number of fresh launches of a configuration at any load, since its best load
// may change.
func freshOf(v verdict.Verdict, c search.Candidate) int {
	n := 0
	for _, x := range v.Choices {
		if x.Candidate.Key() == c.Key() {
			n += x.Fresh
		}
	}
	return n
}

// bestOf returns the next cell of a configuration that is compared at its best. It is another load
// if that may be better by more than the precision of the comparison.
func (p *Plan) bestOf(d *decision, c *verdict.Choice) posterior.Cell {
	if others := p.contestOfLoads(d, c).rivals(p.tuning.Precise); len(others) > 0 {
		return others[0]
	}
	return c.Cell
}

// isEnough reports whether no other choice is better by more than the user's Until.
func (p *Plan) isEnough(v verdict.Verdict) bool {
	return p.settings.Until > 0 && v.Nearest == nil && v.More <= p.settings.Until
}

// enough returns the reason for the end of a campaign with isEnough.
func (p *Plan) enough() string {
	return fmt.Sprintf("nothing else is better by more than %.3g %%", p.settings.Until*100)
}
