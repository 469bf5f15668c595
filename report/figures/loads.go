package figures

import (
	"fmt"
	"strconv"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/measure"
)

// BestAtLoads makes the table of the best configuration at each load.
func BestAtLoads(r analyze.Result) (heads []terminal.Column, cells [][]string) {
	if len(r.Models) > 0 {
		return bestAtScales(r)
	}
	heads = []terminal.Column{{Title: loadHeader(r), Right: true}, {Title: "Best config"}, {Title: "infer/s", Right: true},
		{Title: "p99 ms", Right: true}, {Title: "Default's infer/s", Right: true}, {Title: "Gain", Right: true}, {Title: "Measured", Right: true}}
	for _, l := range r.Loads {
		level := strconv.FormatFloat(l.Load.Level(), 'g', 5, 64)
		if l.Load.BatchSize > 1 {
			level += fmt.Sprintf(" × %d", l.Load.BatchSize)
		}
		row := []string{level, "none within the limits", Unknown, Unknown, Unknown, Unknown, strconv.Itoa(l.Measured)}
		if l.Best != nil {
			row[1] = OneLine(nameCell(r, *l.Best))
			row[2], row[3], row[5] = throughputCell(*l.Best), valueCell(measure.LatencyP99, msCell)(*l.Best), GainCell(r, *l.Best)
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

// LoadsTitle is the title of the table of loads.
const LoadsTitle = "Best at each load"

// LoadsNote says how to read the table.
const LoadsNote = "Each row uses only the windows that were measured at its load. A search measures few configurations at every load. Parentheses mark a missed limit."

// AdaptNote says what a table of several configurations does not.
const AdaptNote = "Whether a server should change between them: `tuner plan --format adaptive`."
