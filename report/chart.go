package report

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"tuner/internal/plotstyle"
)

// chartHeight is 650 of CSS' pixels, in points.
const chartHeight = 487.5 * vg.Length(1)

var (
	paleColor  = color.RGBA{0xc6, 0xca, 0xd0, 0xff}
	limitColor = color.RGBA{0xb0, 0x1e, 0x2e, 0xff}
	palette    = [...]color.RGBA{plotstyle.Blue, plotstyle.Vermillion, plotstyle.Green, plotstyle.Purple, plotstyle.Orange} // of curves
)

// chart is a picture: title and subtitle above, curves on the left, their names on the right.
type chart struct {
	title, subtitle string
	x, y            axis
	curves          []curve // drawn in this order, the last on top
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

// limit is a constraint's bound, drawn as a dashed line.
type limit struct {
	label    string
	value    float64
	vertical bool // a bound of x, else of y
}

// write draws the chart as a PNG picture.
func (c chart) write(w io.Writer) error {
	image := vgimg.NewWith(vgimg.UseWH(plotstyle.Width, chartHeight), vgimg.UseDPI(plotstyle.DPI))
	canvas := draw.New(image)
	top := c.drawTitle(canvas)
	legendWidth := legendWidth(c.legend)
	body := draw.Crop(canvas, plotstyle.Margin, -plotstyle.Margin, plotstyle.Margin, -top)
	drawLegend(draw.Crop(body, body.Size().X-legendWidth, 0, 0, -14), c.legend)
	c.drawPlot(draw.Crop(body, 0, -legendWidth-20, 0, 0))
	if _, err := (vgimg.PngCanvas{Canvas: image}).WriteTo(w); err != nil {
		return fmt.Errorf("cannot write chart: %w", err)
	}
	return nil
}

// drawTitle writes title and subtitle, and returns the height that they take.
func (c chart) drawTitle(canvas draw.Canvas) vg.Length {
	title := plotstyle.Text(15, plotstyle.Ink)
	title.YAlign = text.YTop
	subtitle := plotstyle.Text(10, plotstyle.Soft)
	subtitle.YAlign = text.YTop
	at := vg.Point{X: plotstyle.Margin, Y: canvas.Max.Y - plotstyle.Margin}
	canvas.FillText(title, at, c.title)
	at.Y -= 21
	canvas.FillText(subtitle, at, c.subtitle)
	return plotstyle.Margin + 21 + 24
}

// drawPlot draws axes, grid, limits and curves.
func (c chart) drawPlot(canvas draw.Canvas) {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	setAxis(&p.X, c.x)
	setAxis(&p.Y, c.y)
	p.Y.LineStyle.Width = 0
	p.Y.Tick.Length = 0
	grid := plotter.NewGrid()
	grid.Horizontal = draw.LineStyle{Color: plotstyle.Grid, Width: 0.75}
	grid.Vertical = draw.LineStyle{Color: plotstyle.Grid, Width: 0.75}
	p.Add(grid)
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

// Plot implements plot.Plotter: the dashed line, with its label in the free band that every chart has on top.
func (l limit) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	line := draw.LineStyle{Color: limitColor, Width: 1.25, Dashes: []vg.Length{5, 4}}
	style := plotstyle.Text(10, limitColor)
	if !l.vertical {
		at := y(l.value)
		canvas.StrokeLine2(line, canvas.Min.X, at, canvas.Max.X, at)
		canvas.FillText(style, vg.Point{X: canvas.Min.X + 5, Y: at + 3}, l.label)
		return
	}
	at := x(l.value)
	canvas.StrokeLine2(line, at, canvas.Min.Y, at, canvas.Max.Y)
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
