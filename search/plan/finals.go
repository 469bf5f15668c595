package plan

import (
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

const (
	fewest     = 2    // fresh launches of the answer and of the default, before anything is told of them
	mostRounds = 12   // of finals without a budget
	longer     = 2    // windows of the finals are longer by this factor
	maxWindows = 3    // of one launch in the finals
	worthIt    = 0.01 // relative gain that is worth a trial in the finals
	precise    = 0.02 // half of the interval of the gain over the default that is narrow enough, relative
)

// turnsPerBlock is how many windows each seat of a block has on its launch: an even number, so that all are treated alike. A block of three then takes
// about 20 s, of which 9 s are windows. More of them on one launch would say less of what launches differ by.
const turnsPerBlock = 6

// takesTurns reports whether finals are measured in blocks of turns. A pause empties a queue, so that at a request rate it would hide that the queue
// grows.
func takesTurns(s search.Settings) bool { return s.Turns && !s.Space.Load.Rate }

// finals measure what the decision depends on, on engine processes launched for it: the answer so far,
// what is most likely to be better, and the default. Each round follows the decision after the one
// before. Where engines can be paused, those of a round take turns (search.Settings.Block).
type finals struct {
	plan    *Plan
	windows int            // of each trial
	rounds  int            // begun
	queue   []search.Trial // of the present round, still to be told where they are measured one after the other
	single  bool           // blocks of turns are not to be had
	block   int            // that the last trial was a seat of; 0: none
	left    int            // of its seats, still to be told
	failed  map[string]int // fresh launches that failed, by candidate
	curve   []search.Event // of the curve phase
	last    []search.Trial // of the last round
}

func (p *Plan) newFinals() *finals {
	return &finals{plan: p, windows: p.finalWindows(), failed: map[string]int{}}
}

// finalWindows is how many windows a launch is used for: as many as it takes that three fifths of the time are windows. A
// dearer launch is worth more of them (Kalibera and Jones, 2013: repeat most where the costs are least).
func (p *Plan) finalWindows() int {
	launch := p.costs.launches.all.or(guessedLaunch) + p.costs.serving.warmUp.or(guessedWarmUp)
	n := math.Round(1.5 * launch.Seconds() / (longer * p.settings.Window).Seconds())
	return min(max(int(n), 1), maxWindows)
}

// finalTrial is a trial with long windows on a fresh launch.
func finalTrial(s search.Settings, c search.Candidate, level float64, windows int) search.Trial {
	t := s.Trial(c, level, search.PhaseFinal)
	t.Windows = windows
	t.Window *= longer
	t.Fresh = true
	return t
}

// next returns what to measure next: the rest of the present round, or a new one, one trial or a block of
// turns. Without refine it goes on until the answer and the default were measured on fresh launches; with
// refine until nothing else is likely to be better.
func (f *finals) next(affordable func([]search.Trial) bool, refine bool) (search.Action, bool) {
	if len(f.queue) > 0 {
		return search.Action{Trial: f.queue[0], Why: whyAlone}, affordable(f.queue[:1])
	}
	if f.plan.settings.Budget == (search.Budget{}) && f.rounds >= mostRounds {
		return search.Action{}, false
	}
	seats := f.seats(refine)
	if len(seats) == 0 {
		return search.Action{}, false
	}
	if a := f.plan.settings.Block(seats, turnsPerBlock); takesTurns(f.plan.settings) && !f.single && a.Block != nil {
		a.Why = "finals: fresh launches in turns"
		if affordable(a.Trials()) {
			return a, true
		}
	}
	if f.rounds > 0 && !affordable(seats) {
		return search.Action{}, false // a part of a round would favour those that are in it
	}
	return search.Action{Trial: seats[0], Why: whyAlone}, affordable(seats[:1])
}

const whyAlone = "finals: fresh launches one after the other"

// tell enters a final trial.
func (f *finals) tell(e search.Event) {
	if len(f.queue) == 0 && f.left == 0 { // it begins a round
		seats := f.seats(true)
		f.rounds++
		if e.Trial.Block == 0 && len(seats) > 0 && seats[0].Candidate.Key() == e.Trial.Candidate.Key() {
			f.queue = seats
			f.single = f.single || takesTurns(f.plan.settings) && len(seats) > 1
		}
		f.last = seats
	}
	if e.Measurement.Failure != nil {
		f.failed[e.Trial.Candidate.Key()]++
	}
	f.seat(e.Trial)
}

// seat notes that a trial of a round was told.
func (f *finals) seat(t search.Trial) {
	switch {
	case t.Block == 0:
		f.left = 0
		if len(f.queue) > 0 {
			f.queue = f.queue[1:]
		}
	case t.Block != f.block:
		f.left = len(f.last) - 1
	default:
		f.left = max(0, f.left-1)
	}
	f.block = t.Block
}

// seats are the trials of the next round, none where no more are worth it.
func (f *finals) seats(refine bool) []search.Trial {
	if f.plan.settings.Elsewhere {
		return f.elsewhere()
	}
	v, known := f.plan.decided()
	answer := v.Answer()
	if answer == nil {
		return nil
	}
	m := meeting{plan: f.plan, known: known, verdict: v, failed: f.failed}
	m.consider()
	var list []posterior.Cell
	add := func(c posterior.Cell) {
		isIn := slices.ContainsFunc(list, func(x posterior.Cell) bool {
			return x.Candidate.Key() == c.Candidate.Key() && x.Load == c.Load
		})
		if !isIn && len(list) < search.MostSeats {
			list = append(list, c)
		}
	}
	isOpen := answer.Fresh < fewest
	rival, chance := m.rival()
	if chance > 1-v.Confidence && (refine || isOpen) {
		isOpen = isOpen || refine
	}
	isBaseOpen := v.Default != nil && !answer.Candidate.IsDefault() && v.Nearest == nil &&
		(v.Default.Fresh < fewest || refine && isVague(answer))
	if !isOpen && !isBaseOpen || v.Nearest != nil && answer.Fresh >= fewest && m.isVain() {
		return nil
	}
	add(answer.Cell)
	if isBaseOpen {
		add(v.Default.Cell)
	}
	if chance > 1-v.Confidence {
		add(rival)
	}
	var trials []search.Trial
	for _, c := range list {
		trials = append(trials, finalTrial(f.plan.settings, c.Candidate, c.Load.Level(), f.windows))
	}
	return trials
}

// isVague reports whether the gain over the default is known too little.
func isVague(answer *verdict.Choice) bool {
	if answer.Gain == nil {
		return false
	}
	return (answer.Gain.Hi-answer.Gain.Lo)/2 > precise*answer.Gain.Value
}

// meeting weighs what the answer should meet in the finals: cells that were measured, and loads beside
// those of the best configurations that were not.
type meeting struct {
	plan    *Plan
	known   *posterior.Posterior
	verdict verdict.Verdict
	failed  map[string]int

	cells []posterior.Cell
	worth []float64 // probability that the cell keeps the limits and is better than the answer
}

// mostConsidered is how many configurations have the loads beside theirs considered.
const mostConsidered = 4

// consider fills in the cells and what each is worth.
func (m *meeting) consider() {
	answer := m.verdict.Answer().Cell
	seen := map[string]bool{}
	add := func(c posterior.Cell) {
		key := c.Candidate.Key() + c.Load.String()
		if !seen[key] && m.failed[c.Candidate.Key()] == 0 {
			seen[key], m.cells = true, append(m.cells, c)
		}
	}
	seen[answer.Candidate.Key()+answer.Load.String()] = true
	for _, c := range m.verdict.Choices {
		if !c.OnlyCurve && !c.IsBroken {
			add(c.Cell)
		}
	}
	for i, c := range m.verdict.Configs {
		if i >= mostConsidered {
			break
		}
		for _, level := range m.beside(c) {
			add(posterior.Cell{Candidate: c.Candidate, Load: m.plan.settings.Space.Load.At(level)})
		}
	}
	m.worth = m.chances(append(slices.Clone(m.cells), answer))
}

// beside are the loads of the axis next to a configuration's, where the simulation predicts them: one
// below, one above, and the middle towards the next that were measured.
func (m *meeting) beside(c verdict.Choice) []float64 {
	axis, level := m.plan.settings.Space.Load, c.Load.Level()
	var list []float64
	for _, x := range []float64{axis.AtMost(level / 1.1), axis.AtMost(level / 1.3), axis.AtLeast(level * 1.1), axis.AtLeast(level * 1.3)} {
		cell := posterior.Cell{Candidate: c.Candidate, Load: axis.At(x)}
		if x != level && m.known.IsPredicted(cell, measure.Throughput) {
			list = append(list, x)
		}
	}
	return list
}

// chances are, for all cells but the last, the probabilities that they keep all limits and have a score
// above that of the last by what is worth it.
func (m *meeting) chances(cells []posterior.Cell) []float64 {
	last := len(cells) - 1
	list := make([]float64, last)
	means, deviations, holds := make([]float64, last), make([]float64, last), make([]float64, last)
	for i := range holds {
		holds[i] = 1
	}
	goal := m.plan.settings.Goal
	for _, t := range goal.Objective.Terms {
		j, ok := m.known.Joint(cells, t.Metric)
		if !ok {
			return list
		}
		sign := -t.Weight
		if info, _ := t.Metric.Info(); info.HigherBetter {
			sign = t.Weight
		}
		for i := range last {
			d := j.Difference(i, last)
			means[i] += sign * d.Mean
			deviations[i] += math.Abs(sign) * d.Deviation
		}
	}
	for _, c := range goal.Constraints {
		j, ok := m.known.Joint(cells, c.Metric)
		for i := range last {
			if ok && c.Max != nil && !math.IsNaN(j.Means[i]) {
				holds[i] *= j.At(i).Below(*c.Max)
			}
			if ok && c.Min != nil && !math.IsNaN(j.Means[i]) {
				holds[i] *= 1 - j.At(i).Below(*c.Min)
			}
		}
	}
	least := math.Log1p(worthIt)
	if m.verdict.Recommended == nil { // anything that is safe is better than what is not
		least = math.Inf(-1)
	}
	for i := range list {
		p := 1.0
		if !math.IsInf(least, -1) {
			p = 1 - posterior.Normal{Mean: means[i], Deviation: deviations[i]}.Below(math.Exp(least))
		}
		list[i] = holds[i] * p
	}
	return list
}

// rival is the cell that is most likely to be better than the answer, and how likely that is. While
// nothing is recommended it is the best of what is likely to keep the limits as surely as is asked.
func (m *meeting) rival() (posterior.Cell, float64) {
	best := -1
	for i, w := range m.worth {
		if best < 0 || w > m.worth[best] {
			best = i
		}
	}
	if best < 0 {
		return posterior.Cell{}, 0
	}
	return m.cells[best], m.worth[best]
}

// isVain reports whether nothing has a chance to keep the limits.
func (m *meeting) isVain() bool {
	_, chance := m.rival()
	return chance < 1-m.verdict.Confidence && m.verdict.Answer().Holds < 1-m.verdict.Confidence
}
