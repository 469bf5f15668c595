package chart

import (
	"cmp"
	"io"
	"slices"

	"gonum.org/v1/plot"

	"tuner/analyze"
	"tuner/internal/plotstyle"
	"tuner/measure"
	"tuner/report/figures"
	"tuner/search/verdict"
	"tuner/spec/plots"
)

// WritePlot draws a metric over another one, or over the load, as PNG, with a curve for each
// configuration.
func WritePlot(p plots.Plot) func(io.Writer, analyze.Result) error {
	return func(w io.Writer, r analyze.Result) error {
		x := loadAxis(r)
		if p.X != "" {
			x = metricAxis(r, p.X)
		}
		c := newChart(r, cmp.Or(p.Title, figures.Capitalized(verdict.Label(p.Y))+" against "+x.name), figures.QuantityOf(p.Y), x.of)
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

// abscissa is the x axis of a plot.
type abscissa struct {
	name, title string
	of          func(analyze.Point) (float64, bool)
	limits      []limit
	ticks       func(least, most float64) []plot.Tick
}

func metricAxis(r analyze.Result, m measure.Metric) abscissa {
	q := figures.QuantityOf(m)
	return abscissa{verdict.Label(m), q.Title, q.Of, limitsOf(r, m, q.Factor, true), plotstyle.DecadeTicks}
}

func loadAxis(r analyze.Result) abscissa {
	if len(r.Models) > 0 {
		return abscissa{"scale", scaleTitle, level, nil, doublingTicks}
	}
	if figures.IsRate(r) {
		return abscissa{"request rate", "Request rate (requests/s)", level, nil, doublingTicks}
	}
	return abscissa{"concurrency", "Concurrency (requests in flight)", level, nil, doublingTicks}
}

// rising sorts points by x, and keeps those with a larger y than all earlier ones.
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
