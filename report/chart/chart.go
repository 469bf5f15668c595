// Package chart draws the charts of an analyzed campaign as PNG pictures:
//
//   - throughput against latency and load,
//   - Pareto sets,
//   - the parts of the latency,
//   - the stages of tuning,
//   - the plots that analyze.yaml asks for.
//
// It draws with gonum's plot in the style of package plotstyle, and computes no figures.
package chart

import (
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tuner/internal/plotstyle"
)

// chartHeight is 650 CSS pixels, in points.
const chartHeight = 487.5 * vg.Length(1)

var (
	paleColor = color.RGBA{0xc6, 0xca, 0xd0, 0xff}
	// palette: curve colours
	palette = [...]color.RGBA{plotstyle.Blue, plotstyle.Vermillion, plotstyle.Green, plotstyle.Purple, plotstyle.Orange}
)

// picture is a chart: title and subtitle above, curves on the left, their names on the right.
type picture struct {
	title, subtitle string
	x, y            axis
	curves          []curve // in drawing order, the last on top
	limits          []limit
	legend          []entry
}

// axis is one side of a chart.
type axis struct {
	title    string
	log      bool
	min, max float64
	ticks    []plot.Tick
}

// limit is the bound of a constraint, drawn as a dashed line.
type limit struct {
	label    string
	value    float64
	vertical bool // a bound of x instead of y
}

// write draws the picture as PNG.
func (c picture) write(w io.Writer) error {
	return plotstyle.Write(w, chartHeight, func(canvas draw.Canvas) {
		plotstyle.Title(canvas, c.title, c.subtitle)
		legendWidth := legendWidth(c.legend)
		body := draw.Crop(canvas, plotstyle.Margin, -plotstyle.Margin, plotstyle.Margin, -plotstyle.TitleHeight)
		drawLegend(draw.Crop(body, body.Size().X-legendWidth, 0, 0, -14), c.legend)
		c.drawPlot(draw.Crop(body, 0, -legendWidth-20, 0, 0))
	})
}

// drawPlot draws axes, grid, limits and curves.
func (c picture) drawPlot(canvas draw.Canvas) {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	setAxis(&p.X, c.x)
	setAxis(&p.Y, c.y)
	p.Y.LineStyle.Width = 0
	p.Y.Tick.Length = 0
	p.Add(plotstyle.Grid())
	for _, l := range c.limits {
		p.Add(l)
	}
	for _, curve := range c.curves {
		p.Add(curve)
	}
	// Adding plotters may have widened the axes.
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = c.x.min, c.x.max, c.y.min, c.y.max
	p.Draw(canvas)
}

func setAxis(to *plot.Axis, a axis) {
	plotstyle.Axis(to, a.title, a.ticks)
	if a.log {
		to.Scale = plot.LogScale{}
	}
}

// Plot implements plot.Plotter. It draws a dashed line, with its label in the free band at the top
// of every chart.
func (l limit) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	if !l.vertical {
		plotstyle.HorizontalLimit(canvas, y(l.value), l.label)
		return
	}
	at := x(l.value)
	style := plotstyle.Text(10, plotstyle.LimitColor)
	canvas.StrokeLine2(plotstyle.LimitLine(), at, canvas.Min.Y, at, canvas.Max.Y)
	style.YAlign = text.YTop
	position := vg.Point{X: at + 5, Y: canvas.Max.Y - 3}
	if position.X+style.Width(l.label) > canvas.Max.X {
		position.X = at - 5 - style.Width(l.label)
	}
	canvas.FillText(style, position, l.label)
}

// doublingTicks marks the powers of two within the range.
func doublingTicks(least, most float64) []plot.Tick {
	var ticks []plot.Tick
	for v := math.Exp2(math.Ceil(math.Log2(least))); v <= most; v *= 2 {
		ticks = append(ticks, plotstyle.NumberTick(v))
	}
	return ticks
}
