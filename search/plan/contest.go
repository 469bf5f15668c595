package plan

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/search/posterior"
	"tuner/search/verdict"
)

// tiny keeps a divisor from being zero.
const tiny = 1e-18

// contest weighs what a choice should meet in the finals, the answer for one. Each cell is worth what a trial of it is
// expected to gain (the knowledge gradient; Frazier, Powell and Dayanik, INFORMS Journal on Computing 21, 2009): it may
// turn out to be better than the choice, and to keep the limits as surely as is asked.
type contest struct {
	plan *Plan
	*decision
	isSafe bool             // the choice keeps the limits as surely as is asked
	cells  []posterior.Cell // the last is the choice
	in     map[posterior.CellKey]bool
	out    map[string]bool    // keys of the candidates that may not lead
	scores []posterior.Normal // of each over the choice's, on log scale
	noise  float64            // variance of a trial's score
	safe   []float64          // probability that, after one more trial, it keeps the limits as surely as is asked
}

// contestOf lets the answer meet what was measured, the loads beside those of the best configurations, and what the strategy
// predicts to be better.
func (p *Plan) contestOf(d *decision) *contest {
	m := p.newContest(d, d.verdict.Answer())
	m.isSafe = d.verdict.Recommended != nil
	for _, c := range d.verdict.Choices {
		m.enterCell(c.Cell)
	}
	for _, c := range d.verdict.Configs[:min(p.tuning.Considered, len(d.verdict.Configs))] {
		m.enterLoadsBeside(c.Cell)
	}
	if !p.settings.Elsewhere { // what the strategy predicts is of the search's server
		for _, r := range p.predicted(p.tuning.Considered) {
			m.enterCell(posterior.Cell{Candidate: r.Candidate, Load: r.Load})
		}
	}
	return m.weigh()
}

// contestOfLoads lets a configuration meet itself under other loads: each is to be compared at its best.
func (p *Plan) contestOfLoads(d *decision, choice *verdict.Choice) *contest {
	m := p.newContest(d, choice)
	m.isSafe = choice.Holds >= d.verdict.Confidence
	for _, c := range d.verdict.Choices {
		if c.Candidate.Key() == choice.Candidate.Key() {
			m.enterCell(c.Cell)
		}
	}
	m.enterLoadsBeside(choice.Cell)
	return m.weigh()
}

func (p *Plan) newContest(d *decision, choice *verdict.Choice) *contest {
	m := &contest{
		plan: p, decision: d, cells: []posterior.Cell{choice.Cell}, in: map[posterior.CellKey]bool{choice.Cell.Key(): true}, out: map[string]bool{},
	}
	for _, c := range d.verdict.Choices {
		if !c.MayLead() {
			m.out[c.Candidate.Key()] = true
		}
	}
	return m
}

// enterCell adds a cell that may be measured and is not in yet; the choice stays the last.
func (m *contest) enterCell(c posterior.Cell) {
	if key := c.Key(); !m.in[key] && !m.out[c.Candidate.Key()] {
		m.in[key] = true
		m.cells = slices.Insert(m.cells, len(m.cells)-1, c)
	}
}

// enterLoadsBeside adds a cell's configuration under loads beside its own.
func (m *contest) enterLoadsBeside(c posterior.Cell) {
	axis, level := m.plan.settings.Space.Load, c.Load.Level()
	for _, factor := range m.plan.tuning.Besides {
		if c.Load = axis.At(axis.AtMost(level * factor)); factor > 1 {
			c.Load = axis.At(axis.AtLeast(level * factor))
		}
		m.enterCell(c)
	}
}

func (m *contest) weigh() *contest {
	m.scoreCells()
	m.predictSafety()
	return m
}

// predicted are the best cells of those that were not measured, as far as the strategy can tell.
func (p *Plan) predicted(most int) []verdict.Rival {
	predictor, ok := p.inner.(Predictor)
	if !ok {
		return nil
	}
	list, _ := predictor.Rivals()
	list = slices.DeleteFunc(slices.Clone(list), func(r verdict.Rival) bool { return r.IsPool })
	value := func(r verdict.Rival) float64 { return r.Score.Mean + math.Log(r.Holds) }
	slices.SortStableFunc(list, func(a, b verdict.Rival) int { return -cmp.Compare(value(a), value(b)) })
	return list[:min(most, len(list))]
}

// scoreCells fills in by how much each is better than the choice.
func (m *contest) scoreCells() {
	last := len(m.cells) - 1
	m.scores = make([]posterior.Normal, len(m.cells))
	deviation := 0.0
	for _, t := range m.plan.settings.Goal.Objective.Terms {
		j, ok := m.known.Joint(m.cells, t.Metric)
		if !ok {
			continue
		}
		weight := t.Signed()
		for i := range m.cells {
			d := j.Difference(i, last)
			m.scores[i].Mean += weight * d.Mean
			m.scores[i].Deviation += t.Weight * d.Deviation
		}
		deviation += t.Weight * math.Sqrt(m.known.Noise(t.Metric))
	}
	m.noise = deviation * deviation
}

// predictSafety fills in the probabilities to be safe after one more trial. A normal belief with variance v becomes, after a trial with
// variance n, one with variance v·n/(v+n), whose mean has moved by a deviation of v/√(v+n).
func (m *contest) predictSafety() {
	m.safe = make([]float64, len(m.cells))
	for i := range m.safe {
		m.safe[i] = 1
	}
	z := distuv.UnitNormal.Quantile(m.verdict.Confidence)
	for _, c := range m.plan.settings.Goal.Constraints {
		j, ok := m.known.Joint(m.cells, c.Metric)
		noise := m.known.Noise(c.Metric)
		for i := range m.cells {
			if !ok || math.IsNaN(j.Means[i]) {
				continue // it will be known
			}
			v := j.Covariance(i, i)
			moves, left := v/math.Sqrt(max(v+noise, tiny)), math.Sqrt(v*noise/max(v+noise, tiny))
			if c.Max != nil {
				m.safe[i] *= posterior.Normal{Mean: j.Means[i] + z*left, Deviation: moves}.Below(*c.Max)
			}
			if c.Min != nil {
				m.safe[i] *= posterior.Normal{Mean: j.Means[i] - z*left, Deviation: moves}.Above(math.Log(*c.Min))
			}
		}
	}
}

// worth is the gain to be expected of a further trial of a cell, and of one of the choice beside it, relative. Where the
// choice is not safe, whatever turns out to be takes its place.
func (m *contest) worth(i int) float64 {
	d := m.scores[i]
	weight := m.plan.settings.Goal.Objective.Weight()
	if !m.isSafe {
		return m.safe[i] * math.Exp(d.Mean/weight)
	}
	v := d.Deviation * d.Deviation
	moves := v / math.Sqrt(max(v+2*m.noise, tiny))
	if moves == 0 {
		return 0
	}
	return m.safe[i] * posterior.Normal{Mean: d.Mean, Deviation: moves}.Surplus(math.Inf(-1)) / weight
}

// rivals are the cells that are worth more than worth, the one that is worth most first. Where the choice is not safe, it is those of which
// one is likely enough to be.
func (m *contest) rivals(worth float64) []posterior.Cell {
	if !m.isSafe {
		worth = m.unlikely()
	}
	places := make([]int, 0, len(m.cells))
	for i := range m.cells[:len(m.cells)-1] {
		if m.worth(i) > worth {
			places = append(places, i)
		}
	}
	slices.SortStableFunc(places, func(a, b int) int { return -cmp.Compare(m.worth(a), m.worth(b)) })
	cells := make([]posterior.Cell, len(places))
	for k, i := range places {
		cells[k] = m.cells[i]
	}
	return cells
}

// isOpen reports whether the choice is not safe and may turn out to be.
func (m *contest) isOpen() bool { return !m.isSafe && m.worth(len(m.cells)-1) > m.unlikely() }

// unlikely is the probability below which nothing is expected to turn out safe.
func (m *contest) unlikely() float64 { return 1 - m.verdict.Confidence }
