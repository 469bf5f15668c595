package chart

import (
	"fmt"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tuner/analyze"
	"tuner/internal/plotstyle"
	"tuner/measure"
	"tuner/report/figures"
	"tuner/search/verdict"
)

// paretoHeight is 840 CSS pixels, in points.
const paretoHeight = 630 * vg.Length(1)

// The styles of the points in Pareto sets, and of the line of a two-way set.
var (
	paretoLook = look{color: plotstyle.Blue, radius: 3.6, sides: 32}
	frontLook  = look{color: plotstyle.Vermillion, width: 1.6}
	restLook   = look{color: paleColor, radius: 2, sides: 16}
	basePoint  = look{color: plotstyle.Ink, radius: 4.6, sides: 4, turn: defaultLook.turn}
)

// WritePareto draws every measured point in throughput, latency and memory as PNG, with a panel for
// each pair of metrics. It marks the Pareto set of all three, the front of the two in the panel,
// and the best.
func WritePareto(w io.Writer, r analyze.Result) error {
	metrics := analyze.FrontMetrics(r.Goal)
	latency := verdict.Label(metrics[0][1])
	return plotstyle.Write(w, paretoHeight, func(canvas draw.Canvas) {
		plotstyle.Title(canvas, "Pareto sets of throughput, "+latency+" and memory", subtitle(r))
		body := draw.Crop(canvas, plotstyle.Margin, -plotstyle.Margin, plotstyle.Margin, -plotstyle.TitleHeight)
		for i, pair := range metrics[1:] {
			drawPareto(cellOf(body, i), r, pair)
		}
		legend := cellOf(body, len(metrics)-1)
		drawLegend(draw.Crop(legend, 40, 0, 0, -20), paretoLegend(r))
	})
}

// cellOf returns one of four equal parts of a canvas, by rows.
func cellOf(canvas draw.Canvas, i int) draw.Canvas {
	const gap = 9 // half of the space between two parts
	size := canvas.Size()
	column, row := vg.Length(i%2), vg.Length(i/2)
	return draw.Crop(canvas, column*(size.X/2+gap), (column-1)*(size.X/2+gap), (1-row)*(size.Y/2+gap), -row*(size.Y/2+gap))
}

// drawPareto draws the panel of two metrics, the first on the vertical axis.
func drawPareto(canvas draw.Canvas, r analyze.Result, pair []measure.Metric) {
	x, y := figures.QuantityOf(pair[1]), figures.QuantityOf(pair[0])
	c := picture{curves: paretoCurves(r, x, y), limits: append(limitsOf(r, x.Metric, x.Factor, true), limitsOf(r, y.Metric, y.Factor, false)...)}
	if len(c.curves) == 0 {
		style := plotstyle.Text(11, plotstyle.Soft)
		style.XAlign, style.YAlign = text.XCenter, text.YCenter
		canvas.FillText(style, canvas.Center(), fmt.Sprintf("no configuration has both %s and %s", verdict.Label(pair[0]), verdict.Label(pair[1])))
		return
	}
	c.x = logAxis(x.Title+", log scale", c.extent(), sparseTicks)
	if y.Metric == measure.Throughput {
		most := c.highest() * 1.12
		c.y = axis{title: y.Title, max: most, ticks: plotstyle.LinearTicks(most)}
	} else {
		c.y = logAxis(y.Title+", log scale", c.upwards().extent(), sparseTicks)
	}
	c.drawPlot(canvas)
}

// upwards returns the picture with its axes exchanged.
func (c picture) upwards() picture {
	var turned picture
	for _, drawn := range c.curves {
		var points []dot
		for _, d := range drawn.points {
			points = append(points, dot{x: d.y, y: d.x})
		}
		turned.curves = append(turned.curves, curve{points: points})
	}
	for _, l := range c.limits {
		turned.limits = append(turned.limits, limit{value: l.value, vertical: !l.vertical})
	}
	return turned
}

// sparseTicks returns DecadeTicks with few labels, so that they fit a panel.
func sparseTicks(least, most float64) []plot.Tick {
	ticks := plotstyle.DecadeTicks(least, most)
	const labels = 6
	for i := range ticks {
		if every := (len(ticks) + labels - 1) / labels; i%every != 0 {
			ticks[i].Label = ""
		}
	}
	return ticks
}

// paretoCurves returns the points of a panel, the most important on top.
func paretoCurves(r analyze.Result, x, y figures.Quantity) []curve {
	type place struct {
		name string
		load measure.Load
	}
	isFront := map[place]bool{}
	for _, p := range frontOf(r, analyze.FrontMetrics(r.Goal)[0]).Points {
		isFront[place{p.Name, p.Load}] = true
	}
	rest, best, base := curve{look: restLook}, curve{look: paretoLook}, curve{look: basePoint}
	for i, c := range r.Configs {
		for _, p := range figures.OnServerOf(r, figures.First(r).Best, c.Points) {
			across, knownX := x.Of(p)
			up, knownY := y.Of(p)
			if !knownX || !knownY {
				continue
			}
			isBest := c.Best != nil && p.Load == c.Best.Load
			d := dot{x: across, y: up, hollow: len(p.Misses) > 0, ringed: i == 0 && isBest}
			switch {
			case c.Candidate.IsDefault() && isBest:
				base.points = append(base.points, d)
			case isFront[place{c.Name, p.Load}]:
				best.points = append(best.points, d)
			default:
				rest.points = append(rest.points, d)
			}
		}
	}
	var list []curve
	for _, drawn := range []curve{rest, stairs(frontOf(r, []measure.Metric{y.Metric, x.Metric}), x, y), best, base} {
		if len(drawn.points) > 0 {
			list = append(list, drawn)
		}
	}
	return list
}

// frontOf returns the front of these metrics, without points if there is no such front.
func frontOf(r analyze.Result, metrics []measure.Metric) analyze.Front {
	for _, f := range r.Fronts {
		if slices.Equal(f.Metrics, metrics) {
			return f
		}
	}
	return analyze.Front{}
}

// stairs returns the line of a two-way front, whose first metric is y. Between two points it shows
// the worse value, since only that is known to be reachable. It leaves out values for which the axes
// have no place (figures.Quantity.Of).
func stairs(f analyze.Front, x, y figures.Quantity) curve {
	line := curve{look: frontLook}
	for _, p := range f.Points {
		d := dot{x: p.Values[1] * x.Factor, y: p.Values[0] * y.Factor}
		if d.x <= 0 || d.y <= 0 {
			continue
		}
		if len(line.points) > 0 {
			line.points = append(line.points, dot{x: line.points[len(line.points)-1].x, y: d.y})
		}
		line.points = append(line.points, d)
	}
	return line
}

func paretoLegend(r analyze.Result) []entry {
	var list []entry
	if len(r.Fronts) > 0 {
		list = append(list, entry{label: "Pareto set of all three", look: paretoLook},
			entry{label: "Pareto front of the two in the panel", look: frontLook})
	}
	list = append(list, entry{label: "other points", look: restLook})
	if r.Default().Best != nil {
		list = append(list, entry{label: legendLabel(r, r.Default()), look: basePoint})
	}
	if best, ok := r.Winner(); ok {
		look := paretoLook
		if best.Candidate.IsDefault() {
			look = basePoint
		}
		list = append(list, entry{label: "best: " + bestLabel(r, best), look: look, mark: markRing})
	}
	isHollow := func(c analyze.Config) bool {
		return slices.ContainsFunc(c.Points, func(p analyze.Point) bool { return len(p.Misses) > 0 })
	}
	if slices.ContainsFunc(r.Configs, isHollow) {
		list = append(list, entry{label: "misses a constraint", look: look{color: plotstyle.Soft, radius: 3, sides: 16}, mark: markHollow})
	}
	return list
}

// bestLabel names the best configuration in a few words.
func bestLabel(r analyze.Result, c analyze.Config) string {
	if c.Candidate.IsDefault() {
		return "the default"
	}
	return c.Candidate.Describe()
}
