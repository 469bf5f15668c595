package report

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
	"tuner/search/verdict"
)

// quantity is a metric on an axis.
type quantity struct {
	metric measure.Metric
	title  string  // with the unit
	factor float64 // from the base unit to that of the axis
}

func quantityOf(m measure.Metric) quantity {
	info, _ := m.Info()
	name := capitalized(verdict.Label(m))
	switch info.Unit {
	case measure.Seconds:
		if _, isPercentile := m.Quantile(); isPercentile {
			name = verdict.Label(m) + " latency"
		}
		return quantity{m, name + " (ms)", 1e3}
	case measure.Bytes:
		return quantity{m, name + " (MB)", 1e-6}
	case measure.Share:
		return quantity{m, name + " (%)", 100}
	}
	return quantity{m, fmt.Sprintf("%s (%s)", name, info.Unit), 1}
}

// of is the metric at a point in the unit of the axis; false where it is not known, or has no place on an axis.
func (q quantity) of(p analyze.Point) (float64, bool) {
	e, ok := p.Values[q.metric]
	return e.Value * q.factor, ok && e.Value > 0
}

// paretoHeight is 840 of CSS' pixels, in points.
const paretoHeight = 630 * vg.Length(1)

// The looks of the points of Pareto sets, and of the line of a two-way one.
var (
	paretoLook = look{color: plotstyle.Blue, radius: 3.6, sides: 32}
	frontLook  = look{color: plotstyle.Vermillion, width: 1.6}
	restLook   = look{color: paleColor, radius: 2, sides: 16}
	basePoint  = look{color: plotstyle.Ink, radius: 4.6, sides: 4, turn: defaultLook.turn}
)

// WriteParetoChart draws every measured point in throughput, latency and memory as a PNG picture, two of them at a time: those that no other one
// beats in all three, the line of those that none beats in the two of the panel, and the best.
func WriteParetoChart(w io.Writer, r analyze.Result) error {
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

// cellOf is one of four equal parts of a canvas, by rows.
func cellOf(canvas draw.Canvas, i int) draw.Canvas {
	const gap = 9 // half of the space between two
	size := canvas.Size()
	column, row := vg.Length(i%2), vg.Length(i/2)
	return draw.Crop(canvas, column*(size.X/2+gap), (column-1)*(size.X/2+gap), (1-row)*(size.Y/2+gap), -row*(size.Y/2+gap))
}

// drawPareto draws the panel of two metrics, the first upwards.
func drawPareto(canvas draw.Canvas, r analyze.Result, pair []measure.Metric) {
	x, y := quantityOf(pair[1]), quantityOf(pair[0])
	c := chart{curves: paretoCurves(r, x, y), limits: append(limitsOf(r, x.metric, x.factor, true), limitsOf(r, y.metric, y.factor, false)...)}
	if len(c.curves) == 0 {
		style := plotstyle.Text(11, plotstyle.Soft)
		style.XAlign, style.YAlign = text.XCenter, text.YCenter
		canvas.FillText(style, canvas.Center(), fmt.Sprintf("no figures of both %s and %s", verdict.Label(pair[0]), verdict.Label(pair[1])))
		return
	}
	c.x = logAxis(x.title+", log scale", c.extent(), sparseTicks)
	if y.metric == measure.Throughput {
		most := c.highest() * 1.12
		c.y = axis{title: y.title, max: most, ticks: plotstyle.LinearTicks(most)}
	} else {
		c.y = logAxis(y.title+", log scale", c.upwards().extent(), sparseTicks)
	}
	c.drawPlot(canvas)
}

// upwards is a chart with its axes changed round.
func (c chart) upwards() chart {
	var turned chart
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

// sparseTicks are DecadeTicks with so few labels that they have room in a panel.
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

// paretoCurves are the points of a panel, the most important on top.
func paretoCurves(r analyze.Result, x, y quantity) []curve {
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
		for _, p := range onServerOf(r, firstOf(r).Best, c.Points) {
			across, knownX := x.of(p)
			up, knownY := y.of(p)
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
	for _, drawn := range []curve{rest, stairs(frontOf(r, []measure.Metric{y.metric, x.metric}), x, y), best, base} {
		if len(drawn.points) > 0 {
			list = append(list, drawn)
		}
	}
	return list
}

// frontOf is the front of these metrics; without points where there is none.
func frontOf(r analyze.Result, metrics []measure.Metric) analyze.Front {
	for _, f := range r.Fronts {
		if slices.Equal(f.Metrics, metrics) {
			return f
		}
	}
	return analyze.Front{}
}

// stairs is the line of a two-way front, whose first metric is y: between two of its points the worse one is the best there is.
func stairs(f analyze.Front, x, y quantity) curve {
	line := curve{look: frontLook}
	for i, p := range f.Points {
		d := dot{x: p.Values[1] * x.factor, y: p.Values[0] * y.factor}
		if i > 0 {
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
			entry{label: "front of the two in the panel", look: frontLook})
	}
	list = append(list, entry{label: "other points", look: restLook})
	if r.Default().Best != nil {
		list = append(list, entry{label: "default: " + setupText(r.Default().Setup), look: basePoint})
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
