package figures

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
)

// Several models on one server have one answer: how far their traffic can grow. Each model has its own
// share of it: its load at that scale, and its limits.

// Share has the load and the figures of one of several models in a configuration, at the load that ranks it.
type Share struct {
	Model  string
	Load   measure.Load // of the model
	Setup  analyze.Setup
	Text   string                              // its config.pbtxt
	Cores  string                              // of its own, as lists have them: 0-3,8; "" if it shares all
	Values map[measure.Metric]measure.Estimate // by metric, without the model's name
	Limits []ShareLimit                        // of the model, in the goal's order
}

// ShareLimit is a limit of one of several models. Its metric has no model's name.
type ShareLimit struct {
	Constraint  search.Constraint
	Probability float64 // that it is kept, 0 to 1; NaN unknown
	IsUnknown   bool    // too few requests were measured to tell
}

// Used returns the share of a limit that a figure uses: 0.6 if 30 ms of 50 ms are. For a minimum it is
// the limit over the figure. It is 0 if the figure is unknown.
func (l ShareLimit) Used(values map[measure.Metric]measure.Estimate) float64 {
	e, ok := values[l.Constraint.Metric]
	switch {
	case !ok || e.Value <= 0:
		return 0
	case l.Constraint.Max != nil:
		return e.Value / *l.Constraint.Max
	case l.Constraint.Min != nil:
		return *l.Constraint.Min / e.Value
	}
	return 0
}

// SharesOf returns the shares of several models in a configuration, in the profile's order; none for one
// model, and for a configuration without figures.
func SharesOf(r analyze.Result, c analyze.Config) []Share {
	if len(r.Models) == 0 || c.Best == nil {
		return nil
	}
	choice, isKnown := ChoiceOf(r, c)
	list := make([]Share, len(c.Parts))
	for i, p := range c.Parts {
		s := Share{Model: p.Model, Load: c.Best.Load.Of(p.Model), Setup: p.Setup, Text: p.Text, Values: map[measure.Metric]measure.Estimate{}}
		if i < len(c.Policies) {
			s.Cores = c.Policies[i].List()
		}
		for m, e := range c.Best.Values {
			if model, of := m.Split(); model == p.Model {
				s.Values[of] = e
			}
		}
		for k, limit := range r.Goal.Constraints {
			model, of := limit.Metric.Split()
			if model != p.Model {
				continue
			}
			limit.Metric = of
			l := ShareLimit{Constraint: limit, Probability: math.NaN()}
			if isKnown && k < len(choice.Limits) {
				l.Probability, l.IsUnknown = choice.Limits[k].Probability, choice.Limits[k].IsUnknown()
			}
			s.Limits = append(s.Limits, l)
		}
		list[i] = s
	}
	return list
}

// String describes a share for people: "90 requests/s; p99 31.2 ms [30.1, 32.4] of 50 ms, kept: 97 %".
func (s Share) String() string {
	parts := []string{s.Load.String()}
	if rate, ok := s.Values[measure.Throughput]; ok && s.Load.Concurrency > 0 {
		parts[0] += ", " + verdict.Interval(measure.Throughput, rate)
	}
	if e, ok := s.Values[measure.LatencyP99]; ok && len(s.Limits) == 0 {
		parts = append(parts, verdict.Label(measure.LatencyP99)+" "+verdict.Interval(measure.LatencyP99, e))
	}
	for _, l := range s.Limits {
		parts = append(parts, l.text(s.Values))
	}
	if s.Cores != "" {
		parts = append(parts, "cores "+s.Cores)
	}
	return strings.Join(parts, "; ")
}

// text describes a limit with its figure: "p99 31.2 ms [30.1, 32.4] of 50 ms, kept: 97 %".
func (l ShareLimit) text(values map[measure.Metric]measure.Estimate) string {
	metric := l.Constraint.Metric
	e, ok := values[metric]
	if !ok {
		return verdict.ConstraintText(l.Constraint) + ", unknown"
	}
	text := verdict.Label(metric) + " " + verdict.Interval(metric, e)
	if l.Constraint.Max != nil {
		text += " of " + verdict.LimitText(metric, *l.Constraint.Max)
	}
	if l.Constraint.Min != nil {
		text += ", at least " + verdict.LimitText(metric, *l.Constraint.Min)
	}
	if math.IsNaN(l.Probability) {
		return text
	}
	mark := ""
	if l.IsUnknown {
		mark = unknownMark
	}
	return fmt.Sprintf("%s, kept: %s%s", text, verdict.Percent(l.Probability), mark)
}

// shareLines has a line for each of several models, in the first configuration.
func shareLines(r analyze.Result) []verdict.Line {
	var lines []verdict.Line
	for _, s := range SharesOf(r, First(r)) {
		lines = append(lines, verdict.Line{Name: s.Model, Text: s.String() + "."})
	}
	return lines
}

// Growth says how far the traffic of several models can grow, with the figure: "this traffic can grow
// 1.8 ×; at 2 ×, the next scale tried, a limit is missed". It returns false if nothing that keeps the limits was
// found, and for another objective.
func Growth(r analyze.Result) (figure, text string, ok bool) {
	best, found := r.Winner()
	if !found || !r.Goal.SeeksScale() || best.Best.Load.Scale <= 0 {
		return "", "", false
	}
	figure = verdict.Factor(best.Best.Load.Scale) + " ×"
	if r.At != nil {
		return figure, fmt.Sprintf("at %s", best.Best.Load), true
	}
	s := subjectOf(r, best)
	switch scale := best.Best.Load.Scale; {
	case s.IsHighest:
		return figure, fmt.Sprintf("this traffic can grow at least %s, as far as the profile's scales go", figure), true
	case scale < 1:
		text = fmt.Sprintf("only %s this traffic fits", figure)
	case scale == 1 && s.Higher == nil:
		text = "this traffic fits"
	case scale == 1:
		text = "this traffic fits, and cannot grow"
	default:
		text = fmt.Sprintf("this traffic can grow %s", figure)
	}
	return figure, text + nextScale(s), true
}

// nextScale says what happened at the next higher scale that was tried, as the end of a text. The figure itself
// has no error: it was chosen among scales some per cent apart.
func nextScale(s analyze.Subject) string {
	if s.Higher == nil {
		return ", and no larger scale was tried"
	}
	what := "a limit may be missed"
	if len(s.Higher.Misses) > 0 {
		what = "a limit is missed"
	}
	return fmt.Sprintf("; at %s ×, the next scale tried, %s", verdict.Factor(s.Higher.Load.Scale), what)
}

// subjectOf returns the explanation of a configuration at the load that ranks it; the zero Subject without one.
func subjectOf(r analyze.Result, c analyze.Config) analyze.Subject {
	i := slices.IndexFunc(r.Explanation.Subjects, func(s analyze.Subject) bool { return s.Name == c.Name && s.Load == c.Best.Load })
	if i < 0 {
		return analyze.Subject{}
	}
	return r.Explanation.Subjects[i]
}

// withGrowth puts the growth behind the state with which a headline begins.
func withGrowth(r analyze.Result, v verdict.Verdict, headline string) string {
	_, text, ok := Growth(r)
	badge := v.State.Badge()
	rest, isHeadline := strings.CutPrefix(headline, badge+": ")
	if !ok || !isHeadline || r.At != nil {
		return headline
	}
	if v.Recommended == nil {
		text = strings.Replace(text, " can ", " may ", 1)
	}
	return badge + ": " + text + "; " + rest
}

// columnsOfSeveral lists the columns of the ranking of several models: a column for the configuration of
// each, and one for each figure that the goal names. Inferences of different models do not add up, so
// there is no throughput.
func columnsOfSeveral(r analyze.Result) []column {
	list := []column{
		{header: "#", cell: func(c analyze.Config) string { return rankCell(r, c) }, right: true},
		{header: "Config", cell: func(c analyze.Config) string { return nameCell(r, c) }},
	}
	for i, m := range r.Models {
		list = append(list, column{header: m.Header.Model, cell: func(c analyze.Config) string { return partCell(r, i, c.Parts[i].Setup) }, right: true})
	}
	if isDivided(r) {
		list = append(list, column{header: "Cores", cell: coresCell, right: true})
	}
	list = append(list, column{header: loadHeader(r), cell: loadCell, right: true})
	for _, m := range r.Goal.Metrics() {
		if m != measure.Scale && m != measure.Memory {
			list = append(list, metricColumn(m))
		}
	}
	return append(list, column{header: "RSS MB", cell: valueCell(measure.Memory, megabytesCell), right: true},
		column{header: "Gain", cell: func(c analyze.Config) string { return GainCell(r, c) }, right: true},
		column{header: "OK", cell: func(c analyze.Config) string { return satisfiesCell(r, c) }})
}

// partCell prints the setup of one of several models: "2 × 1, 16 int8". It names the precision if
// configurations differ in it.
func partCell(r analyze.Result, i int, s analyze.Setup) string {
	text := threadsCell(s)
	if s.MaxBatchSize > 0 {
		text += fmt.Sprintf(", %d", s.MaxBatchSize)
	}
	if slices.ContainsFunc(r.Configs, func(c analyze.Config) bool { return c.Parts[i].Setup.Precision != s.Precision }) {
		text += " " + s.Precision
	}
	return text
}

// severalLimits says which model of the best configuration is nearest to its limit, and why its load is not
// higher.
func severalLimits(r analyze.Result) Section {
	s := Section{Title: "What limits it"}
	var nearest Share
	var limit ShareLimit
	most := 0.0
	for _, share := range SharesOf(r, First(r)) {
		for _, l := range share.Limits {
			if used := l.Used(share.Values); used > most {
				nearest, limit, most = share, l, used
			}
		}
	}
	if most > 0 {
		e := nearest.Values[limit.Constraint.Metric]
		s.Lines = append(s.Lines, fmt.Sprintf("%s is nearest to its limit: its %s is %s, and the limit %s (%.0f %% of it is used).", nearest.Model,
			verdict.Label(limit.Constraint.Metric), limit.Constraint.Metric.Format(e.Value), verdict.ConstraintText(limit.Constraint), 100*most))
	}
	if subject := r.Explanation.Subjects[0]; r.At == nil {
		s.Lines = append(s.Lines, higherText(r, subject))
	}
	return s
}

// modelMetrics lists the goal's metrics of several models.
func modelMetrics(goal search.Goal) []measure.Metric {
	return slices.DeleteFunc(goal.Metrics(), func(m measure.Metric) bool { model, _ := m.Split(); return model == "" })
}

// bestAtScales is BestAtLoads for several models, with a column for each figure that the goal names.
func bestAtScales(r analyze.Result) (heads []terminal.Column, cells [][]string) {
	heads = []terminal.Column{{Title: loadHeader(r), Right: true}, {Title: "Best config"}}
	metrics := modelMetrics(r.Goal)
	for _, m := range metrics {
		heads = append(heads, terminal.Column{Title: metricColumn(m).header, Right: true})
	}
	for _, m := range metrics {
		heads = append(heads, terminal.Column{Title: "default's " + metricColumn(m).header, Right: true})
	}
	heads = append(heads, terminal.Column{Title: "Measured", Right: true})
	for _, l := range r.Loads {
		row := []string{strconv.FormatFloat(l.Load.Level(), 'g', 5, 64), "none within the limits"}
		best := analyze.Config{}
		if l.Best != nil {
			best, row[1] = *l.Best, OneLine(nameCell(r, *l.Best))
		}
		for _, c := range []analyze.Config{best, {Best: l.Base}} {
			for _, m := range metrics {
				row = append(row, metricColumn(m).cell(c))
			}
		}
		cells = append(cells, append(row, strconv.Itoa(l.Measured)))
	}
	return heads, cells
}

// alone returns the result of each of several models as if it were the only one, for the parts of a
// report that are about one model's files and requests.
func alone(r analyze.Result) []analyze.Result {
	list := r.OfEach()
	for i := range list {
		list[i].Models, list[i].Stages = nil, nil
	}
	return list
}

// ofEach joins the texts about each of several models: "encoder: this; ranker: that". For one model it
// is the text.
func ofEach(r analyze.Result, text func(one analyze.Result) string) string {
	if len(r.Served()) == 0 {
		return text(r)
	}
	var parts []string
	for _, one := range alone(r) {
		if said := text(one); said != "" {
			parts = append(parts, one.Header.Model+": "+said)
		}
	}
	return strings.Join(parts, "; ")
}

// linesOfEach lists lines about each of several models, behind its name. For one model they are its lines.
func linesOfEach(r analyze.Result, lines func(one analyze.Result) []string) []string {
	if len(r.Served()) == 0 {
		return lines(r)
	}
	var list []string
	for _, one := range alone(r) {
		for _, line := range lines(one) {
			list = append(list, one.Header.Model+": "+line)
		}
	}
	return list
}

// partOf returns a configuration's part in the result of one of several models. For one model it is the
// configuration.
func partOf(one analyze.Result, c analyze.Config) analyze.Config {
	if part, ok := one.Config(c.Name); ok {
		return part
	}
	return c
}
