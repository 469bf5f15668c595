package figures

import (
	"fmt"
	"strings"

	"tuner/analyze"
	"tuner/analyze/bottleneck"
	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/search/verdict"
)

// A pipeline has the load and the figures of one model, and the configurations of several: its stages.

// stageColumns lists a column for the configuration of each stage.
func stageColumns(r analyze.Result) []column {
	var list []column
	for i, m := range r.Stages {
		if !m.Calls {
			list = append(list, column{header: m.Header.Model, cell: func(c analyze.Config) string { return partCell(r, i, c.Parts[i].Setup) }, right: true})
		}
	}
	return list
}

// pipelineLines say which stage limits the best configuration, the other finalists and the default.
func pipelineLines(r analyze.Result) []string {
	var lines []string
	for i, subject := range r.Explanation.Subjects {
		text := BottleneckStage(subject)
		switch {
		case i == 0:
			lines = append(append(lines, latencyLines(subject)...), text)
			if r.At == nil { // otherwise the user chose the load
				lines = append(lines, higherText(r, subject))
			}
		case subject.Name == r.Default().Name:
			lines = append(lines, "The default, for comparison. "+text)
		default:
			lines = append(lines, ShortName(r, configOf(r, subject))+", for comparison. "+text)
		}
	}
	return lines
}

// BottleneckStage names the stage that limits a configuration of a pipeline, with the figures that show it.
func BottleneckStage(s analyze.Subject) string {
	limiting, ok := bottleneck.Limiting(s.Stages)
	if !ok {
		return "Which stage limits it is not known: the server's statistics are missing."
	}
	verb := "are"
	if limiting.Instances == 1 {
		verb = "is"
	}
	busy := fmt.Sprintf("%.2f of its %s %s busy on average (%.0f %%)", limiting.Busy, words.Count(limiting.Instances, "instance"), verb, 100*limiting.Utilization())
	var others []string
	for _, other := range s.Stages {
		if other.Model != limiting.Model {
			others = append(others, fmt.Sprintf("%s %.0f %%", other.Model, 100*other.Utilization()))
		}
	}
	beside := ""
	if len(others) > 0 {
		beside = "; " + strings.Join(others, ", ")
	}
	if limiting.Utilization() < bottleneck.Saturated {
		return fmt.Sprintf("No stage is saturated. The bottleneck is %s: %s%s.", limiting.Model, busy, beside)
	}
	return fmt.Sprintf("The bottleneck is %s: %s%s.", limiting.Model, busy, beside)
}

// stageHeads are the columns of the table of stages.
func stageHeads() []terminal.Column {
	return []terminal.Column{{Title: "Stage"}, {Title: "Busy", Right: true}, {Title: "Queue ms", Right: true}, {Title: "Compute ms", Right: true},
		{Title: "Batch", Right: true}, {Title: "Requests for each", Right: true}}
}

// stageCells is the table of stages.
func stageCells(s analyze.Subject) [][]string {
	var cells [][]string
	for _, stage := range s.Stages {
		batch := Unknown
		if stage.MeanBatch > 0 {
			batch = fmt.Sprintf("%.1f", stage.MeanBatch)
		}
		cells = append(cells, []string{stage.Model, fmt.Sprintf("%.0f %%", 100*stage.Utilization()), msCell(stage.Queue), msCell(stage.Compute), batch, fmt.Sprintf("%.2g", stage.Calls)})
	}
	return cells
}

// lineBottleneck is the name of the line about the stage that limits a pipeline.
const lineBottleneck = "Bottleneck"

// stageLines says which stage is the bottleneck of the best configuration, behind the answer.
func stageLines(r analyze.Result) []verdict.Line {
	if !r.IsPipeline() || len(r.Explanation.Subjects) == 0 || r.Explanation.Subjects[0].Name != First(r).Name {
		return nil
	}
	limiting, ok := bottleneck.Limiting(r.Explanation.Subjects[0].Stages)
	if !ok {
		return nil
	}
	return []verdict.Line{{Name: lineBottleneck, Text: fmt.Sprintf("%s: its instances are busy for %.0f %% of the time; a request spends %s there.",
		limiting.Model, 100*limiting.Utilization(), measure.LatencyAvg.Format(limiting.Queue+limiting.Compute))}}
}
