package report

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// The size of a chart: 1000 × 650 of CSS' pixels (96 to the inch), drawn with two dots to each.
const (
	chartWidth  = 750 * vg.Length(1) // points, 72 to the inch
	chartHeight = 487.5 * vg.Length(1)
	chartDPI    = 192
	margin      = 16 * vg.Length(1)
)

// The colours of curves can be told apart with any kind of colour vision (the palette of Okabe and Ito, from the most to
// the least contrast on white).
var (
	inkColor   = color.RGBA{0x22, 0x26, 0x2b, 0xff}
	softColor  = color.RGBA{0x5f, 0x66, 0x6e, 0xff}
	gridColor  = color.RGBA{0xe9, 0xeb, 0xee, 0xff}
	paleColor  = color.RGBA{0xc6, 0xca, 0xd0, 0xff}
	limitColor = color.RGBA{0xb0, 0x1e, 0x2e, 0xff}
	palette    = [...]color.RGBA{
		{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff},
		{0xcc, 0x79, 0xa7, 0xff}, {0xe6, 0x9f, 0x00, 0xff},
	}
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
	image := vgimg.NewWith(vgimg.UseWH(chartWidth, chartHeight), vgimg.UseDPI(chartDPI))
	canvas := draw.New(image)
	top := c.drawTitle(canvas)
	legendWidth := legendWidth(c.legend)
	body := draw.Crop(canvas, margin, -margin, margin, -top)
	drawLegend(draw.Crop(body, body.Size().X-legendWidth, 0, 0, -14), c.legend)
	c.drawPlot(draw.Crop(body, 0, -legendWidth-20, 0, 0))
	if _, err := (vgimg.PngCanvas{Canvas: image}).WriteTo(w); err != nil {
		return fmt.Errorf("cannot write chart: %w", err)
	}
	return nil
}

// drawTitle writes title and subtitle, and returns the height that they take.
func (c chart) drawTitle(canvas draw.Canvas) vg.Length {
	title := textStyle(15, inkColor)
	title.YAlign = text.YTop
	subtitle := textStyle(10, softColor)
	subtitle.YAlign = text.YTop
	at := vg.Point{X: margin, Y: canvas.Max.Y - margin}
	canvas.FillText(title, at, c.title)
	at.Y -= 21
	canvas.FillText(subtitle, at, c.subtitle)
	return margin + 21 + 24
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
	grid.Horizontal = draw.LineStyle{Color: gridColor, Width: 0.75}
	grid.Vertical = draw.LineStyle{Color: gridColor, Width: 0.75}
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
	to.Label.Text = a.title
	to.Label.TextStyle.Font = sans(11)
	to.Label.TextStyle.Color = inkColor
	to.Label.Padding = 5
	to.Tick.Label.Font = sans(10)
	to.Tick.Label.Color = softColor
	to.Tick.LineStyle.Color = softColor
	to.Tick.LineStyle.Width = 0.75
	to.Tick.Length = 4
	to.Tick.Marker = plot.ConstantTicks(a.ticks)
	to.LineStyle = draw.LineStyle{Color: softColor, Width: 0.75}
	to.Padding = 0
	if a.log {
		to.Scale = plot.LogScale{}
	}
}

// Plot implements plot.Plotter: the dashed line, with its label in the free band that every chart has on top.
func (l limit) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	line := draw.LineStyle{Color: limitColor, Width: 1.25, Dashes: []vg.Length{5, 4}}
	style := textStyle(10, limitColor)
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

func sans(size font.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

func textStyle(size font.Length, c color.Color) text.Style {
	return text.Style{Color: c, Font: sans(size), Handler: plot.DefaultTextHandler}
}

// linearTicks marks round steps of 1, 2 or 5 times a power of ten, about six of them from 0 to max.
func linearTicks(most float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10(most/6)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if most/(step*factor) <= 7 {
			step *= factor
			break
		}
	}
	var ticks []plot.Tick
	for i := 0; float64(i)*step <= most; i++ {
		ticks = append(ticks, numberTick(float64(i)*step))
	}
	return ticks
}

// decadeTicks marks round numbers of each power of ten within the range, more of them where the range is short.
func decadeTicks(least, most float64) []plot.Tick {
	if ticks := stepTicks(least, most, 1, 2, 5); len(ticks) >= 4 {
		return ticks
	}
	return stepTicks(least, most, 1, 1.5, 2, 3, 5, 7)
}

func stepTicks(least, most float64, steps ...float64) []plot.Tick {
	var ticks []plot.Tick
	for decade := math.Pow(10, math.Floor(math.Log10(least))); decade <= most; decade *= 10 {
		for _, step := range steps {
			if v := decade * step; v >= least && v <= most {
				ticks = append(ticks, numberTick(v))
			}
		}
	}
	return ticks
}

// doublingTicks marks the powers of two within the range.
func doublingTicks(least, most float64) []plot.Tick {
	var ticks []plot.Tick
	for v := math.Exp2(math.Ceil(math.Log2(least))); v <= most; v *= 2 {
		ticks = append(ticks, numberTick(v))
	}
	return ticks
}

func numberTick(v float64) plot.Tick {
	return plot.Tick{Value: v, Label: fmt.Sprintf("%.6g", v)}
}
