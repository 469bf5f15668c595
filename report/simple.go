package report

import (
	"cmp"
	"io"
	"slices"

	"gonum.org/v1/plot"

	"tuner/analyze"
	"tuner/internal/plotstyle"
	"tuner/measure"
	"tuner/search/verdict"
	"tuner/spec"
)

// simpleDir holds the pictures that the user asks for, by Model Analyzer's name for them.
const simpleDir = "simple"

// WritePlot draws a metric over another one or over the load as a PNG picture, a curve for each configuration.
func WritePlot(p spec.Plot) func(io.Writer, analyze.Result) error {
	return func(w io.Writer, r analyze.Result) error {
		x := loadAxis(r)
		if p.X != "" {
			x = metricAxis(r, p.X)
		}
		c := newChart(r, cmp.Or(p.Title, capitalized(verdict.Label(p.Y))+" against "+x.name), quantityOf(p.Y), x.of)
		if p.IsMonotonic {
			for i := range c.curves {
				c.curves[i].points = rising(c.curves[i].points)
			}
		}
		c.limits = append(c.limits, x.limits...)
		c.x = logAxis(x.title+", log scale", c.extent(), x.ticks)
		return c.write(w)
	}
}

// abscissa is what a plot's x axis shows.
type abscissa struct {
	name, title string
	of          func(analyze.Point) (float64, bool)
	limits      []limit
	ticks       func(least, most float64) []plot.Tick
}

func metricAxis(r analyze.Result, m measure.Metric) abscissa {
	q := quantityOf(m)
	return abscissa{verdict.Label(m), q.title, q.of, limitsOf(r, m, q.factor, true), plotstyle.DecadeTicks}
}

func loadAxis(r analyze.Result) abscissa {
	if isRate(r) {
		return abscissa{"request rate", "Request rate (requests/s)", level, nil, doublingTicks}
	}
	return abscissa{"concurrency", "Concurrency (requests in flight)", level, nil, doublingTicks}
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
