package plan

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/search/posterior"
	"tuner/search/verdict"
)

// tiny is the least variance: a divisor must not be zero.
const tiny = posterior.Least * posterior.Least

// contest weighs the opponents of a choice in the finals, such as those of the answer. A cell's
// worth is the expected gain of a trial (the knowledge gradient; Frazier, Powell and Dayanik,
// INFORMS Journal on Computing 21, 2009). The cell may turn out to be better than the choice, and
// to keep the limits with the required confidence.
type contest struct {
	plan *Plan
	*decision
	isSafe bool             // the choice keeps the limits with the required confidence
	cells  []posterior.Cell // the last is the choice
	in     map[posterior.CellKey]bool
	out    map[string]bool    // keys of the candidates that may not lead
	scores []posterior.Normal // by cell, minus the choice's, on log scale
	noise  float64            // variance of a trial's score
	// safe: probability that, after one more trial, it keeps the limits with the required
	// confidence
	safe []float64
}

// contestOf compares the answer with the measured cells, the loads beside those of the best
// configurations, and the strategy's best predictions.
func (p *Plan) contestOf(d *decision) *contest {
	m := p.newContest(d, d.verdict.Answer())
	m.isSafe = d.verdict.Recommended != nil
	for _, c := range d.verdict.Choices {
		m.enterCell(c.Cell)
	}
	for _, c := range d.verdict.Configs[:min(p.tuning.Considered, len(d.verdict.Configs))] {
		m.enterLoadsBeside(c.Cell)
	}
	if !p.settings.Elsewhere { // the strategy's predictions apply to the search's server
		for _, r := range p.predicted(p.tuning.Considered) {
			m.enterCell(posterior.Cell{Candidate: r.Candidate, Load: r.Load})
		}
	}
	return m.weigh()
}

// contestOfLoads compares a configuration with itself under other loads, since each is compared at
// its best.
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

// contestOfUnseen compares the default with itself under the loads at which it may keep the limits.
// There must be some (verdict.Verdict.Unseen).
func (p *Plan) contestOfUnseen(d *decision) *contest {
	choice, unseen := d.verdict.Default, d.verdict.Unseen
	m := p.newContest(d, choice)
	measured := d.known.Measured()
	for _, c := range p.at(choice.Cell, slices.Concat(unseen.Levels(p.settings.Space.Load), p.besides(choice.Load.Level()))) {
		isMeasured := slices.ContainsFunc(measured, func(m posterior.Measured) bool { return m.Is(c) })
		if unseen.Has(c.Load.Level()) && !isMeasured {
			m.enterCell(c)
		}
	}
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

// enterCell adds a cell that may be measured and is not in yet. The choice stays last.
func (m *contest) enterCell(c posterior.Cell) {
	if key := c.Key(); !m.in[key] && !m.out[c.Candidate.Key()] {
		m.in[key] = true
		m.cells = slices.Insert(m.cells, len(m.cells)-1, c)
	}
}

// enterLoadsBeside adds a cell's configuration under loads beside its own.
func (m *contest) enterLoadsBeside(c posterior.Cell) {
	for _, beside := range m.plan.at(c, m.plan.besides(c.Load.Level())) {
		m.enterCell(beside)
	}
}

// at returns a cell's configuration under other levels.
func (p *Plan) at(c posterior.Cell, levels []float64) []posterior.Cell {
	cells := make([]posterior.Cell, len(levels))
	for i, level := range levels {
		cells[i] = c
		cells[i].Load = p.settings.Space.Load.At(level)
	}
	return cells
}

// besides returns the levels beside a level. A scale is offered, and not measured, so neighbouring levels are the
// least differences that an answer can have. Of several models, all levels are among them up to the nearest factors.
func (p *Plan) besides(level float64) []float64 {
	axis, levels := p.settings.Space.Load, make([]float64, len(p.tuning.Besides))
	least, most := axis.First(), axis.Last()
	for i, factor := range p.tuning.Besides {
		if factor > 1 {
			levels[i] = axis.AtLeast(level * factor)
			most = min(most, levels[i])
		} else {
			levels[i] = axis.AtMost(level * factor)
			least = max(least, levels[i])
		}
	}
	if axis.Mix.IsZero() {
		return levels
	}
	for _, near := range axis.Levels {
		if near >= least && near <= most && near != level && !slices.Contains(levels, near) {
			levels = append(levels, near)
		}
	}
	return levels
}

func (m *contest) weigh() *contest {
	m.scoreCells()
	m.predictSafety()
	return m
}

// predicted returns the best unmeasured cells by the strategy's predictions.
func (p *Plan) predicted(most int) []verdict.Rival {
	predictor, ok := p.inner.(Predictor)
	if !ok {
		return nil
	}
	list, _ := predictor.Rivals()
	list = slices.DeleteFunc(slices.Clone(list), func(r verdict.Rival) bool { return r.IsPool })
	value := func(r verdict.Rival) float64 {
		return verdict.Expected(p.settings.Goal.Objective, r.Score.Mean, r.Holds)
	}
	slices.SortStableFunc(list, func(a, b verdict.Rival) int { return -cmp.Compare(value(a), value(b)) })
	return list[:min(most, len(list))]
}

// scoreCells computes each cell's score minus the choice's.
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

// predictSafety computes the probabilities to be safe after one more trial. A normal belief with
// variance v and a trial with variance n give a belief with variance v·n/(v+n). Its mean moves with
// a deviation of v/√(v+n).
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
				continue // known after the trial
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

// worth returns the expected relative gain of a further trial of a cell together with one of the
// choice. If the choice is not safe, a cell that turns out to be safe replaces it.
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

// rivals returns the cells that are worth more than `worth`, the best first. If the choice is not
// safe, it returns those with a sufficient probability to be safe.
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

// unlikely returns the probability below which no cell is expected to turn out safe.
func (m *contest) unlikely() float64 { return 1 - m.verdict.Confidence }
