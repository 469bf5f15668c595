package report

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/plotstyle"
	"tuner/measure"
	"tuner/search/verdict"
)

// stage is one of the three curves over the load: default, after stage 1 (precision, runtime, execution provider, session
// options), after both stages (instances and batching too).
type stage struct {
	title  string
	config analyze.Config
	same   string // title of the stage before that is this one; "" when it has a curve of its own
	look   look
}

// The looks of the three curves, after OLive's chart: blue, light green, dark green.
var (
	stageDefault = look{color: color.RGBA{0x1f, 0x77, 0xd0, 0xff}, width: 2, radius: 4.6, sides: 4, turn: math.Pi / 4}
	stageFirst   = look{color: color.RGBA{0x7c, 0xc6, 0x7c, 0xff}, width: 2, radius: 4.8, sides: 3}
	stageBoth    = look{color: color.RGBA{0x12, 0x6e, 0x3a, 0xff}, width: 2, radius: 4, sides: 32}
)

// stages lists what is known of the three, of the best one's server alone. The default comes first even without figures.
func stages(r analyze.Result) []stage {
	here := func(c analyze.Config) analyze.Config {
		c.Points = onServerOf(r, firstOf(r).Best, c.Points)
		return c
	}
	list := []stage{{title: "default", config: here(r.Default()), look: stageDefault}}
	add := func(s stage) {
		for _, before := range list {
			if before.config.Name == s.config.Name {
				s.same = before.title
				break
			}
		}
		list = append(list, s)
	}
	best, won := r.Winner()
	if one, ok := r.Config(r.FirstStage); ok {
		if won {
			one = noBetter(r, one, best)
		}
		add(stage{title: "after stage 1", config: here(one), look: stageFirst})
	}
	if won {
		add(stage{title: "after both stages", config: here(best), look: stageBoth})
	}
	return list
}

// noBetter is the configuration after stage 1 at a load where it is no better than the best: at its own, unless that looks better
// and is not recommended, since it does not keep the limits well enough or is not shown to be better. Best is nil where there is no such load.
func noBetter(r analyze.Result, one, best analyze.Config) analyze.Config {
	if one.Name == best.Name || one.Best == nil || one.Score.Value <= best.Score.Value {
		return one
	}
	one.Best, one.Gain = nil, nil
	if !r.ByBestLoad() {
		return one
	}
	most := math.Inf(-1)
	for _, x := range r.Verdict.Choices {
		isSafe := x.Holds >= r.Verdict.Confidence && !x.IsUnknown()
		if x.Candidate.Key() != one.Candidate.Key() || !isSafe || x.Score.Mean > best.Score.Value || x.Score.Mean <= most {
			continue
		}
		for i := range one.Points {
			if one.Points[i].Load == x.Load {
				most, one.Best, one.Gain = x.Score.Mean, &one.Points[i], x.Gain
			}
		}
	}
	return one
}

// WriteStagesChart draws the three curves over the load as a PNG picture.
func WriteStagesChart(w io.Writer, r analyze.Result) error {
	c := chart{title: "Throughput by stage of tuning", subtitle: subtitle(r), limits: limitsOf(r, measure.Throughput, 1, false)}
	var drawn []curve
	for _, s := range stages(r) {
		if s.same != "" {
			c.legend = append(c.legend, entry{label: fmt.Sprintf("%s: the same as %s", s.title, s.same), look: s.look})
			continue
		}
		line := curve{points: dots(r, s.config, level, quantityOf(measure.Throughput)), look: s.look}
		if len(line.points) == 0 {
			continue
		}
		drawn = append(drawn, line)
		c.legend = append(c.legend, entry{label: s.title, look: s.look}, entry{label: stageSetup(s.config), mark: markNone})
	}
	c.legend = append(c.legend, keys(r, drawn, 0)...)
	c.curves = drawn
	most := c.highest() * 1.12 // leaves a band free on top for the limit's label
	c.y = axis{title: "Throughput (infer/sec)", max: most, ticks: plotstyle.LinearTicks(most)}
	title := "Request Concurrency"
	if isRate(r) {
		title = "Request Rate (requests/sec)"
	}
	c.x = logAxis(title, c.extent(), doublingTicks)
	return c.write(w)
}

// stageSetup says in a few words what a configuration is.
func stageSetup(c analyze.Config) string {
	if c.Candidate.IsDefault() {
		return setupText(c.Setup)
	}
	return c.Candidate.Describe()
}

// writeStages writes the section on the three curves: what each is, its best load, and the gain at each load.
func writeStages(b *strings.Builder, r analyze.Result, charts bool) {
	list := stages(r)
	if r.Default().Best == nil || len(list) == 1 {
		return
	}
	fmt.Fprintf(b, "\n## Where the gain comes from\n\n")
	if best, ok := r.Winner(); ok && best.Candidate.IsDefault() {
		fmt.Fprintf(b, "Nothing is better than the default: there is no gain to explain.\n")
		return
	}
	fmt.Fprintf(b, "Stage 1 changes what serves the model: precision, runtime, execution provider and session options, with the default's "+
		"instances and batching. Both stages change these too.\n\n")
	switch {
	case r.StageElsewhere:
		fmt.Fprintf(b, "Stage 1 by itself was measured on %s alone, and the best configuration on %s: their figures do not compare.\n\n",
			escapeMarkdown(r.Header.Server.String()), escapeMarkdown(r.Header.Finals.String()))
	case r.FirstStage == "" && r.Recorded == "":
		fmt.Fprintf(b, "Stage 1 by itself was not measured: a larger budget measures it.\n\n")
	}
	var cells [][]string
	for _, s := range list {
		cells = append(cells, stageRow(r, s))
	}
	b.WriteString(markdownTable([]string{"", "configuration", "best load", "throughput", "p99", "gain in " + gainOf(r)}, cells, nil))
	writeStageLoads(b, list)
	if charts {
		fmt.Fprintf(b, "\n![Throughput by stage of tuning](%s)\n", stagesChartName)
	}
}

// stageRow is a stage at its best load.
func stageRow(r analyze.Result, s stage) []string {
	setup := stageSetup(s.config)
	if s.same != "" {
		setup = "the same as " + s.same
	}
	best := s.config.Best
	if best == nil {
		return []string{s.title, setup, "none that keeps the limits well enough", "", "", ""}
	}
	row := []string{s.title, setup, best.Load.String(), "", "", ""}
	if e, ok := best.Values[measure.Throughput]; ok {
		row[3] = measure.Throughput.Format(e.Value)
	}
	if e, ok := best.Values[measure.LatencyP99]; ok {
		row[4] = measure.LatencyP99.Format(e.Value)
	}
	if s.config.Gain != nil && !s.config.Candidate.IsDefault() {
		row[5] = gainCell(r, s.config)
	}
	return row
}

// gainOf names what a configuration's gain is measured by: the metric of the objective, or the objective of several.
func gainOf(r analyze.Result) string {
	if terms := r.Goal.Objective.Terms; len(terms) == 1 {
		return verdict.Label(terms[0].Metric)
	}
	return "the objective"
}

// writeStageLoads writes the throughput of each stage at each load of the curves, and its gain over the default there.
func writeStageLoads(b *strings.Builder, list []stage) {
	list = slices.DeleteFunc(slices.Clone(list), func(s stage) bool { return s.same != "" })
	var loads []measure.Load
	for _, s := range list {
		for _, p := range s.config.Points {
			if !slices.Contains(loads, p.Load) {
				loads = append(loads, p.Load)
			}
		}
	}
	slices.SortFunc(loads, func(x, y measure.Load) int {
		return cmp.Or(cmp.Compare(x.BatchSize, y.BatchSize), cmp.Compare(x.Level(), y.Level()), cmp.Compare(x.Concurrency, y.Concurrency))
	})
	headers := []string{"load"}
	for _, s := range list {
		headers = append(headers, s.title+" (infer/s)")
		if !s.config.Candidate.IsDefault() {
			headers = append(headers, "gain in throughput")
		}
	}
	var cells [][]string
	for _, load := range loads {
		row := []string{load.String()}
		base, known := throughputAt(list[0].config, load)
		for _, s := range list {
			e, ok := throughputAt(s.config, load)
			row = append(row, e.text)
			switch {
			case s.config.Candidate.IsDefault():
			case ok && known && base.value > 0:
				row = append(row, fmt.Sprintf("%.2f ×", e.value/base.value))
			default:
				row = append(row, "")
			}
		}
		cells = append(cells, row)
	}
	fmt.Fprintf(b, "\nAt the same load (in parentheses: misses a constraint):\n\n")
	b.WriteString(markdownTable(headers, cells, nil))
}

// throughputFigure is a cell of the table of loads.
type throughputFigure struct {
	value float64
	text  string
}

func throughputAt(c analyze.Config, load measure.Load) (throughputFigure, bool) {
	for _, p := range c.Points {
		e, ok := p.Values[measure.Throughput]
		if p.Load != load || !ok {
			continue
		}
		text := fmt.Sprintf("%.1f", e.Value)
		if len(p.Misses) > 0 {
			text = "(" + text + ")"
		}
		return throughputFigure{e.Value, text}, true
	}
	return throughputFigure{}, false
}
