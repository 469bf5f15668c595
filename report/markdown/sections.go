package markdown

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/pipeline/steps"
	"tuner/profile/journal"
	"tuner/report"
	"tuner/report/chart"
	"tuner/report/figures"
	"tuner/search/verdict"
)

// answer makes the head of report.md.
func answer(r analyze.Result) string {
	a := figures.AnswerOf(r)
	state, rest, hasMore := strings.Cut(a.Headline, ": ")
	head := "**" + escape(state) + "**"
	if hasMore {
		head += ": " + escape(rest)
	}
	var b strings.Builder
	b.WriteString(terminal.Fill(head, terminal.ProseWidth) + "\n\n")
	for _, l := range a.Lines {
		text := strings.ReplaceAll(escape(l.Text), ">", `\>`) // at the start of a line it would begin a quotation
		b.WriteString(terminal.Fold(fmt.Sprintf("- **%s**: %s\n", l.Name, text), terminal.ProseWidth))
	}
	return b.String()
}

// writeExplanation writes the section on the reasons. Combinations that were left out have a
// section of their own.
func writeExplanation(b *strings.Builder, r analyze.Result) {
	sections := figures.Explanation(r)
	if len(sections) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Why this configuration\n")
	for _, s := range sections {
		fmt.Fprintf(b, "\n### %s\n\n", escape(s.Title))
		for _, line := range s.Lines {
			fmt.Fprintf(b, "- %s\n", escape(line))
		}
		if len(s.Cells) > 0 {
			if len(s.Lines) > 0 {
				fmt.Fprintln(b)
			}
			b.WriteString(table(left(figures.Titles(s.Heads)...), s.Cells))
		}
		for _, line := range s.Notes {
			fmt.Fprintf(b, "\n%s\n", escape(line))
		}
	}
}

// writeClientWork writes the section on what clients must do, if they pad.
func writeClientWork(b *strings.Builder, r analyze.Result) {
	w, pads := figures.ClientWorkOf(r)
	if !pads {
		return
	}
	fmt.Fprintf(b, "\n## What clients must do\n\n")
	for _, line := range w.Lines {
		b.WriteString(terminal.Fold(fmt.Sprintf("- %s\n", escape(line)), terminal.ProseWidth))
	}
	fmt.Fprintf(b, "\n```python\n%s```\n\n```go\n%s```\n", w.Python, w.Go)
}

// writeLoads writes the section on the best at each load if there are several loads.
func writeLoads(b *strings.Builder, r analyze.Result) {
	if len(r.Loads) < 2 {
		return
	}
	heads, cells := figures.BestAtLoads(r)
	fmt.Fprintf(b, "\n## %s\n\n%s\n%s\n", figures.LoadsTitle, table(heads, cells), escape(figures.LoadsNote))
}

// writeFronts writes the section on the Pareto set of three metrics.
func writeFronts(b *strings.Builder, r analyze.Result, charts bool) {
	if len(r.Fronts) == 0 {
		return
	}
	const most = 20
	front := r.Fronts[0]
	names := make([]string, len(front.Metrics))
	for i, m := range front.Metrics {
		names[i] = verdict.Label(m)
	}
	if len(r.Models) > 0 {
		charts = false // two metrics are a row, not a picture
	}
	fmt.Fprintf(b, "\n## Pareto set\n\nNo measured point within the limits is better than these in one of %s without being worse in another.\n\n",
		escape(strings.Join(names, ", ")))
	var cells [][]string
	for i, p := range front.Points {
		if i == most {
			break
		}
		c, _ := r.Config(p.Name)
		row := []string{figures.ShortName(r, c), p.Load.String()}
		for j, m := range front.Metrics {
			row = append(row, m.Format(p.Values[j]))
		}
		cells = append(cells, row)
	}
	b.WriteString(table(left(append([]string{"config", "load"}, names...)...), cells))
	if hidden := len(front.Points) - most; hidden > 0 {
		fmt.Fprintf(b, "\n%s; all are in result.json.\n", words.Count(hidden, "more point"))
	}
	if charts {
		fmt.Fprintf(b, "\n![Pareto sets of %s](%s)\n", escape(strings.Join(names, ", ")), chart.ParetoFile)
	}
}

// writeStages writes the section on the stages: their configurations, best loads, and gains at each
// load.
func writeStages(b *strings.Builder, r analyze.Result, charts bool) {
	list := figures.Stages(r)
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
		fmt.Fprintf(b, "Stage 1 alone was measured on %s, and the best configuration on %s, so their figures do not compare.\n\n",
			escape(r.Header.Server.String()), escape(r.Header.Finals.String()))
	case r.FirstStage == "" && r.Recorded == "":
		fmt.Fprintf(b, "Stage 1 alone was not measured; a larger budget measures it.\n\n")
	}
	var cells [][]string
	for _, s := range list {
		cells = append(cells, stageRow(r, s))
	}
	b.WriteString(table(left("", "configuration", "best load", "throughput", "p99", "gain in "+figures.GainOf(r)), cells))
	writeStageLoads(b, list)
	if charts {
		fmt.Fprintf(b, "\n![Throughput by stage of tuning](%s)\n", chart.StagesFile)
	}
}

// writeStageLoads writes the throughput of each stage at each load of the curves, and its gain over
// the default there.
func writeStageLoads(b *strings.Builder, list []figures.Stage) {
	list = slices.DeleteFunc(slices.Clone(list), func(s figures.Stage) bool { return s.Same != "" })
	var loads []measure.Load
	for _, s := range list {
		for _, p := range s.Config.Points {
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
		headers = append(headers, s.Title+" (infer/s)")
		if !s.Config.Candidate.IsDefault() {
			headers = append(headers, "gain in throughput")
		}
	}
	var cells [][]string
	for _, load := range loads {
		row := []string{load.String()}
		base, known := throughputAt(list[0].Config, load)
		for _, s := range list {
			e, ok := throughputAt(s.Config, load)
			row = append(row, e.text)
			switch {
			case s.Config.Candidate.IsDefault():
			case ok && known && base.value > 0:
				row = append(row, fmt.Sprintf("%.2f ×", e.value/base.value))
			default:
				row = append(row, "")
			}
		}
		cells = append(cells, row)
	}
	fmt.Fprintf(b, "\nAt the same load (in parentheses: misses a constraint):\n\n")
	b.WriteString(table(left(headers...), cells))
}

// writeVariants writes the section on accuracy: each variant's figures, the operators kept in fp32,
// and the rejections.
func writeVariants(b *strings.Builder, r analyze.Result) {
	each := r.OfEach()
	if !slices.ContainsFunc(each, func(one analyze.Result) bool { return len(one.Header.Variants) > 0 }) {
		return
	}
	fmt.Fprintf(b, "\n## Accuracy of the variants\n\n")
	if data := figures.AccuracyData(r); data != "" {
		fmt.Fprintf(b, "Compared with fp32 on cpu, on %s. Limit: %s.\n\n", escape(data), escape(figures.AccuracyLimit(r)))
	}
	if cells := figures.VariantRows(r); len(cells) > 0 {
		b.WriteString(table(left(figures.VariantHeads...), cells))
	}
	for _, one := range each {
		for _, v := range one.Header.Variants {
			if len(r.Served()) > 0 {
				v.Precision = one.Header.Model + " " + v.Precision
			}
			writeVariant(b, v)
		}
	}
	if rejected := figures.Rejections(r); len(rejected) > 0 {
		fmt.Fprintf(b, "\n### Rejected variants\n\nThey were never measured:\n\n")
		for _, line := range rejected {
			fmt.Fprintf(b, "- %s\n", escape(line))
		}
	}
}

// writeVariant writes the notes on a variant, and its operators that stay in fp32.
func writeVariant(b *strings.Builder, v journal.Variant) {
	for _, note := range v.Notes {
		fmt.Fprintf(b, "\n%s: %s.\n", escape(v.Precision), escape(strings.TrimSuffix(note, ".")))
	}
	if len(v.Kept) > 0 {
		fmt.Fprintf(b, "\nIn %[1]s these operators stay in fp32 to keep the limit. Parentheses hold their relative error in %[1]s:\n\n", escape(v.Precision))
	}
	for _, k := range v.Kept {
		fmt.Fprintf(b, "- %s (%.3g)\n", escape(k.Node), k.Error)
	}
}

// writeSteps writes the section on the steps of `tuner run`, if there was such a run.
func writeSteps(b *strings.Builder, r analyze.Result) {
	if len(r.Steps) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Steps\n\n%s", table(left(figures.StepHeads...), figures.StepRows(r.Steps)))
}

// WriteSteps writes the report.md of a `tuner run` that ended before its campaign. It has only the
// steps.
func WriteSteps(dir, model string, list steps.List) error {
	return report.WriteFile(filepath.Join(dir, FileName), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "# %s: no result\n\nThe run ended before anything was measured.\n\n## Steps\n\n%s",
			escape(model), table(left(figures.StepHeads...), figures.StepRows(list)))
		return err
	})
}

// stageRow makes the row of a stage at its best load.
func stageRow(r analyze.Result, s figures.Stage) []string {
	setup := figures.ConfigText(s.Config)
	if s.Same != "" {
		setup = "the same as " + s.Same
	}
	best := s.Config.Best
	if best == nil {
		return []string{s.Title, setup, "none keeps the limits", "", "", ""}
	}
	row := []string{s.Title, setup, best.Load.String(), "", "", ""}
	if e, ok := best.Values[measure.Throughput]; ok {
		row[3] = measure.Throughput.Format(e.Value)
	}
	if e, ok := best.Values[measure.LatencyP99]; ok {
		row[4] = measure.LatencyP99.Format(e.Value)
	}
	if s.Config.Gain != nil && !s.Config.Candidate.IsDefault() {
		row[5] = figures.GainCell(r, s.Config)
	}
	return row
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
		text := fmt.Sprintf("%.*f", measure.ThroughputDecimals(e.Value, 1), e.Value)
		if len(p.Misses) > 0 {
			text = "(" + text + ")"
		}
		return throughputFigure{e.Value, text}, true
	}
	return throughputFigure{}, false
}
