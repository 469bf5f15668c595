package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/measure"
	"tuner/search/verdict"
)

// loadGrid is the table of what is best at each load.
func loadGrid(r analyze.Result) (heads []terminal.Column, cells [][]string) {
	heads = []terminal.Column{{Title: loadHeader(r), Right: true}, {Title: "Best config"}, {Title: "infer/s", Right: true},
		{Title: "p99 ms", Right: true}, {Title: "Default's infer/s", Right: true}, {Title: "Gain", Right: true}, {Title: "Measured", Right: true}}
	for _, l := range r.Loads {
		level := strconv.FormatFloat(l.Load.Level(), 'g', 5, 64)
		if l.Load.BatchSize > 1 {
			level += fmt.Sprintf(" × %d", l.Load.BatchSize)
		}
		row := []string{level, "none within the limits", unknown, unknown, unknown, unknown, strconv.Itoa(l.Measured)}
		if l.Best != nil {
			row[1] = oneLine(nameCell(r, *l.Best))
			row[2], row[3], row[5] = throughputCell(*l.Best), valueCell(measure.LatencyP99, msCell)(*l.Best), gainCell(r, *l.Best)
		}
		if l.Base != nil {
			base := analyze.Config{Best: l.Base}
			row[4] = throughputCell(base)
			if len(l.Base.Misses) > 0 {
				row[4] = "(" + row[4] + ")"
			}
		}
		cells = append(cells, row)
	}
	return heads, cells
}

const loadsTitle = "Best at each load"

// loadsNote says how to read the table.
const loadsNote = "Each load by itself, by the windows that were measured there: a search measures few configurations at every load. In parentheses: misses a limit."

// writeLoads writes the table for a terminal, where it is asked for.
func writeLoads(w io.Writer, r analyze.Result) error {
	if !r.Each || len(r.Loads) == 0 {
		return nil
	}
	heads, cells := loadGrid(r)
	fmt.Fprintf(w, "\n%s\n", loadsTitle)
	if err := terminal.WriteTable(w, heads, cells); err != nil {
		return err
	}
	fmt.Fprintln(w, loadsNote)
	return nil
}

// writeLoadsMarkdown writes the section of report.md; there is none of a single load.
func writeLoadsMarkdown(b *strings.Builder, r analyze.Result) {
	if len(r.Loads) < 2 {
		return
	}
	heads, cells := loadGrid(r)
	titles, columns := make([]string, len(heads)), make([]column, len(heads))
	for i, h := range heads {
		titles[i], columns[i].right = h.Title, h.Right
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n%s\n", loadsTitle, markdownTable(titles, cells, columns), escapeMarkdown(loadsNote))
}

// writeFronts writes the section of report.md on what cannot be improved in one of three metrics without losing in another.
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
	fmt.Fprintf(b, "\n## Pareto set\n\nNo measured point within the limits is better than these in one of %s without being worse in another.\n\n",
		escapeMarkdown(strings.Join(names, ", ")))
	var cells [][]string
	for i, p := range front.Points {
		if i == most {
			break
		}
		c, _ := r.Config(p.Name)
		row := []string{shortName(r, c), p.Load.String()}
		for j, m := range front.Metrics {
			row = append(row, m.Format(p.Values[j]))
		}
		cells = append(cells, row)
	}
	b.WriteString(markdownTable(append([]string{"config", "load"}, names...), cells, nil))
	if hidden := len(front.Points) - most; hidden > 0 {
		fmt.Fprintf(b, "\n%s; all are in result.json.\n", count(hidden, "more point"))
	}
	if charts {
		fmt.Fprintf(b, "\n![Pareto sets of %s](plots/%s)\n", escapeMarkdown(strings.Join(names, ", ")), paretoChartName)
	}
}
