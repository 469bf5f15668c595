package html

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
	"tuner/spec"
)

// limitData is a limit that a slider of the page moves.
type limitData struct {
	Metric measure.Metric `json:"metric"`                              // the metric
	Side   string         `json:"side" jsonschema:"enum=min,enum=max"` // side of the limit
}

// rowData is a value of the second limit, with the places of the first one under it.
type rowData struct {
	Limit  *float64    `json:"limit"`         // value of the second limit; null: no limit
	Own    bool        `json:"own,omitempty"` // it is the report's own limit
	Places []placeData `json:"places"`        // values of the first limit, the tightest first
}

// placeData is a value of the first limit, with the number of the answer under it.
type placeData struct {
	Limit  *float64 `json:"limit"`         // value of the first limit; null: no limit
	Own    bool     `json:"own,omitempty"` // both limits are the report's own
	Answer int      `json:"answer"`        // the answer under these limits
}

// answerData is a decision, in the words and figures that the page shows.
type answerData struct {
	Figure string `json:"figure"` // the gain in large type
	Claim  string `json:"claim"`  // the decision in a sentence
	Roles  []int  `json:"roles"`  // its roles, the answer first
	// its standing
	Standing int `json:"standing"`
}

// Role is the role of a choice in an answer.
type Role struct {
	As     string `json:"as" jsonschema:"enum=recommended,enum=edge,enum=nearest,enum=lightest,enum=default"` // the role
	Title  string `json:"-"`
	Choice int    `json:"choice"`         // the choice that has the role
	Holds  string `json:"holds"`          // probability that it keeps all limits
	Same   bool   `json:"same,omitempty"` // it is not shown to be better or worse than the default
	// the objective as a multiple of the default's, with its interval: "1.59 × [1.46, 1.73]"; with
	// several metrics, how many times better it is
	Gain string `json:"gain,omitempty"`

	Of *choiceData `json:"-"`
}

// choiceData is a configuration at a load, as the page shows it.
type choiceData struct {
	Configuration int         `json:"configuration"` // the configuration; −1: not on the page
	Point         int         `json:"point"`         // index of its point
	Name          string      `json:"name"`          // name of the configuration
	Setup         string      `json:"setup"`         // its setup in a few words
	Load          string      `json:"load"`          // the load
	Figures       [][3]string `json:"figures"`       // figures as text: label, value and interval
	// value, lower and upper end of the interval in the base unit; with several metrics, the factor
	// over the default
	Objective numerals `json:"objective"`
}

// decided is the part of the page's data that comes from decisions.
type decided struct {
	Limits []limitData `json:"limits"` // limits that sliders move, at most two; none if the answer cannot be moved
	// values of the second limit; one row without a second limit
	Rows    []rowData    `json:"rows"`
	Answers []answerData `json:"answers"` // decisions
	Roles   []Role       `json:"roles"`   // roles of choices in answers
	// a digit for each point that takes part: 2 keeps all limits with the required probability, 1 is
	// likely to, 0 is not
	Standings []string      `json:"standings"`
	Choices   []*choiceData `json:"choices"` // configurations at a load
}

// decisions collects answers in the form that the page carries.
type decisions struct {
	page      Page
	places    map[string][2]int // points by configuration and load
	standings *table[string]
	numbers   map[int]int // of the shown choices, by their index in the verdict
	roles     map[Role]int
	answers   map[string]int
	data      decided
}

func newDecisions(p Page) decided {
	d := decisions{
		page: p, places: map[string][2]int{}, standings: newTable[string](), numbers: map[int]int{}, roles: map[Role]int{},
		answers: map[string]int{},
		data: decided{
			Limits: []limitData{}, Rows: []rowData{}, Answers: []answerData{}, Roles: []Role{}, Standings: []string{},
			Choices: []*choiceData{},
		},
	}
	for i, c := range p.Result.Configs {
		for n, point := range c.Points {
			d.places[cellName(c.Candidate, point.Load)] = [2]int{i, n}
		}
	}
	if p.Result.Rank == spec.RankTop3Mean {
		return d.data // the order is not the verdict's, so the answer may differ
	}
	a := answersOf(p.Result)
	for _, x := range a.axes {
		side := "max"
		if x.isLeast {
			side = "min"
		}
		d.data.Limits = append(d.data.Limits, limitData{x.metric, side})
	}
	for _, row := range a.rows {
		r := rowData{Limit: row.limit, Own: row.isOwn}
		for _, p := range row.places {
			r.Places = append(r.Places, placeData{p.limit, p.isOwn, d.answer(p, a.constraintsAt(d.page.Result.Goal, p.limit, row.limit))})
		}
		d.data.Rows = append(d.data.Rows, r)
	}
	d.data.Standings = d.standings.list
	return d.data
}

func cellName(c search.Candidate, load measure.Load) string { return fmt.Sprint(c.Key(), " ", load) }

// answer enters a decision and returns its number. Equal decisions share a number.
func (d *decisions) answer(p place, constraints []search.Constraint) int {
	words := d.page.Verdict
	if !p.isOwn && d.page.Say != nil {
		goal := d.page.Result.Goal
		goal.Constraints = constraints
		words = d.page.Say(goal, p.verdict)
	}
	a := answerData{
		Figure: words.Figure, Claim: words.Claim, Roles: d.rolesOf(p.verdict), Standing: d.standings.of(standing(p.verdict)),
	}
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // cannot happen: the value has only text and numbers
	}
	n, isKnown := d.answers[string(text)]
	if !isKnown {
		n = len(d.data.Answers)
		d.answers[string(text)] = n
		d.data.Answers = append(d.data.Answers, a)
	}
	return n
}

// standing returns a digit for each choice of a decision.
func standing(v verdict.Verdict) string {
	var b strings.Builder
	for _, c := range v.Choices {
		switch {
		case isSafe(c, v.Confidence):
			b.WriteByte('2')
		case c.Holds >= verdict.Likely:
			b.WriteByte('1')
		default:
			b.WriteByte('0')
		}
	}
	return b.String()
}

// rolesOf enters the choices that a decision names, the answer first. It returns their numbers.
func (d *decisions) rolesOf(v verdict.Verdict) []int {
	list := []int{}
	for _, r := range []struct {
		as, title string
		choice    *verdict.Choice
	}{
		{"recommended", "Recommended", v.Recommended}, {"edge", "At the edge", v.Edge}, {"nearest", "Nearest", v.Nearest},
		{"lightest", "Least memory", lightest(v)}, {"default", "Default", v.Default},
	} {
		if r.choice == nil {
			continue
		}
		role := d.role(r.as, r.title, *r.choice, v)
		n, isKnown := d.roles[role]
		if !isKnown {
			n = len(d.data.Roles)
			d.roles[role], d.data.Roles = n, append(d.data.Roles, role)
		}
		list = append(list, n)
	}
	return list
}

func (d *decisions) role(as, title string, c verdict.Choice, v verdict.Verdict) Role {
	r := Role{As: as, Title: title, Choice: d.number(c, v), Holds: holdsText(c)}
	r.Of = d.data.Choices[r.Choice]
	switch {
	case c.Gain == nil:
	case v.Default != nil && c.Candidate.IsDefault() && c.Load == v.Default.Load:
		r.Gain = "1 ×"
	default:
		ratio := verdict.Words{Goal: d.page.Result.Goal}.Ratio(*c.Gain)
		r.Gain = verdict.Factor(ratio.Value) + " ×"
		if ratio.Lo < ratio.Hi {
			r.Gain += fmt.Sprintf(" [%s, %s]", verdict.Factor(ratio.Lo), verdict.Factor(ratio.Hi))
		}
		r.Same = c.Better < v.Confidence && c.Better > 1-v.Confidence
	}
	return r
}

// holdsText returns the probability that a choice keeps all limits; "no limits" without any.
func holdsText(c verdict.Choice) string {
	if len(c.Limits) == 0 {
		return "no limits"
	}
	return c.HoldsText()
}

// number enters a shown choice and returns its number.
func (d *decisions) number(c verdict.Choice, v verdict.Verdict) int {
	at := slices.IndexFunc(v.Choices, func(o verdict.Choice) bool {
		return o.Load == c.Load && o.Candidate.Key() == c.Candidate.Key()
	})
	n, isKnown := d.numbers[at]
	if !isKnown {
		n = len(d.data.Choices)
		d.numbers[at] = n
		d.data.Choices = append(d.data.Choices, d.choice(c))
	}
	return n
}

func (d *decisions) choice(c verdict.Choice) *choiceData {
	r := d.page.Result
	shown := choiceData{Configuration: -1, Name: c.Candidate.Describe(), Setup: c.Candidate.Describe(), Load: c.Load.String()}
	if at, isKnown := d.places[cellName(c.Candidate, c.Load)]; isKnown {
		shown.Configuration, shown.Point = at[0], at[1]
		shown.Name, shown.Setup = r.Configs[at[0]].Name, d.page.Titles[at[0]]
	}
	for _, m := range shownMetrics(r.Goal) {
		e, isKnown := c.Values[m]
		if !isKnown {
			continue
		}
		f := [3]string{d.page.Labels[m], m.Format(e.Value), ""}
		if e.Hi > e.Lo && m != measure.Memory {
			f[2] = intervalText(m, e)
		}
		shown.Figures = append(shown.Figures, f)
	}
	shown.Objective = figuresOf(objectiveOf(r, c))
	return &shown
}

// intervalText prints an interval with its unit once: "[28.4, 34.7 ms]".
func intervalText(m measure.Metric, e measure.Estimate) string {
	lo, hi := m.Format(e.Lo), m.Format(e.Hi)
	number, unit, _ := strings.Cut(lo, " ")
	if _, same, _ := strings.Cut(hi, " "); same == unit {
		lo = number
	}
	return fmt.Sprintf("[%s, %s]", lo, hi)
}

// shownMetrics lists the metrics of a choice that the page shows.
func shownMetrics(goal search.Goal) []measure.Metric {
	list := []measure.Metric{measure.Throughput, goal.Latency()}
	if goal.SeeksScale() { // inferences of several models do not add up
		list = nil
	}
	for _, m := range append(goal.Metrics(), measure.Memory) {
		if m != measure.ErrorRate && !slices.Contains(list, m) && m != measure.Memory && m != measure.Scale { // the load has the scale
			list = append(list, m)
		}
	}
	return append(list, measure.Memory)
}

// objectiveOf returns the objective at a choice: the value of its metric, or with several metrics
// the factor over the default.
func objectiveOf(r analyze.Result, c verdict.Choice) measure.Estimate {
	terms := r.Goal.Objective.Terms
	if len(terms) == 1 {
		return c.Values[terms[0].Metric]
	}
	lo, hi := c.Score.Interval()
	return measure.Estimate{Value: objectiveAt(r, c.Score.Mean), Lo: objectiveAt(r, lo), Hi: objectiveAt(r, hi)}
}

// objectiveAt turns a score into the objective: its metric in the base unit, or with several
// metrics the factor over the default.
func objectiveAt(r analyze.Result, score float64) float64 {
	terms := r.Goal.Objective.Terms
	if len(terms) == 1 {
		sign := -1.0
		if info, _ := terms[0].Metric.Info(); info.HigherBetter {
			sign = 1
		}
		return math.Exp(sign * score / terms[0].Weight)
	}
	base := 0.0
	switch v := r.Verdict; {
	case v.Default != nil:
		base = v.Default.Score.Mean
	case len(v.Choices) > 0:
		base = v.Choices[0].Score.Mean
	}
	return 1 + r.Goal.Objective.Gain(base, score)
}
