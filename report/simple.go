package report

import (
	"cmp"
	"io"
	"slices"

	"tuner/analyze"
	"tuner/internal/plotstyle"
	"tuner/spec"
)

// simpleDir holds the pictures that the user asks for, by Model Analyzer's name for them.
const simpleDir = "simple"

// WritePlot draws a picture that the user asks for.
func WritePlot(p spec.Plot) func(io.Writer, analyze.Result) error {
	return func(w io.Writer, r analyze.Result) error {
		over, name, axisTitle := level, loadName(r), loadTitle(r)
		if p.X != "" {
			x := quantityOf(p.X)
			over, name, axisTitle = x.of, metricLabel(p.X), x.title
		}
		y := quantityOf(p.Y)
		c := newChart(r, cmp.Or(p.Title, capitalized(metricLabel(p.Y))+" against "+name), y, over)
		if p.IsMonotonic {
			for i := range c.curves {
				c.curves[i].points = rising(c.curves[i].points)
			}
		}
		ticks := doublingTicks
		if p.X != "" {
			x := quantityOf(p.X)
			c.limits = append(c.limits, limitsOf(r, x.metric, x.factor, true)...)
			ticks = plotstyle.DecadeTicks
		}
		c.x = logAxis(axisTitle+", log scale", c.extent(), ticks)
		return c.write(w)
	}
}

// rising are the points, by ascending x, whose y is higher than that of all before.
func rising(points []dot) []dot {
	sorted := slices.SortedStableFunc(slices.Values(points), func(a, b dot) int { return cmp.Compare(a.x, b.x) })
	var kept []dot
	for _, d := range sorted {
		if len(kept) == 0 || d.y > kept[len(kept)-1].y {
			kept = append(kept, d)
		}
	}
	return kept
}
