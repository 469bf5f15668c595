// Package plotstyle defines the common style of charts in all reports: size, colours, fonts,
// titles, the grid, and the numbers on axes. It does not know the data.
package plotstyle

import (
	"fmt"
	"image/color"
	"image/png"
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

// The size of a chart in points, 72 per inch: 1000 CSS pixels (96 per inch), drawn with two dots
// per pixel.
const (
	Width  = 750 * vg.Length(1)
	Margin = 16 * vg.Length(1)
	DPI    = 192
)

// The colours of text, axes and grid, and of limits.
var (
	Ink        = color.RGBA{0x22, 0x26, 0x2b, 0xff}
	Soft       = color.RGBA{0x5f, 0x66, 0x6e, 0xff}
	LimitColor = color.RGBA{0xb0, 0x1e, 0x2e, 0xff}
	gridColor  = color.RGBA{0xe9, 0xeb, 0xee, 0xff}
)

// The colours of data can be distinguished with any kind of colour vision. They are the palette of
// Okabe and Ito, from the highest to the lowest contrast on white.
var (
	Blue       = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	Vermillion = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	Green      = color.RGBA{0x00, 0x9e, 0x73, 0xff}
	Purple     = color.RGBA{0xcc, 0x79, 0xa7, 0xff}
	SkyBlue    = color.RGBA{0x56, 0xb4, 0xe9, 0xff}
	Orange     = color.RGBA{0xe6, 0x9f, 0x00, 0xff}
)

// Sans returns the font; size is in points.
func Sans(size font.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// Text returns the style of text in one colour; size is in points.
func Text(size font.Length, c color.Color) text.Style {
	return text.Style{Color: c, Font: Sans(size), Handler: plot.DefaultTextHandler}
}

// Write writes the drawing of paint on a canvas of this height, in points, as a PNG picture.
func Write(w io.Writer, height vg.Length, paint func(draw.Canvas)) error {
	image := vgimg.NewWith(vgimg.UseWH(Width, height), vgimg.UseDPI(DPI))
	paint(draw.New(image))
	// This is the fastest level. The default level takes half as long again, for files that are 4 %
	// smaller.
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(w, image.Image()); err != nil {
		return fmt.Errorf("cannot write chart: %w", err)
	}
	return nil
}

// Title writes a title at the top of a picture, and a line below it. They need TitleHeight.
func Title(canvas draw.Canvas, title, subtitle string) {
	large, small := Text(15, Ink), Text(10, Soft)
	large.YAlign, small.YAlign = text.YTop, text.YTop
	at := vg.Point{X: Margin, Y: canvas.Max.Y - Margin}
	canvas.FillText(large, at, title)
	at.Y -= 21
	canvas.FillText(small, at, subtitle)
}

// TitleHeight is the height of Title, with the margin above and some space below.
const TitleHeight = Margin + 21 + 24

// Grid draws lines at the ticks of both axes.
func Grid() *plotter.Grid {
	line := draw.LineStyle{Color: gridColor, Width: 0.75}
	return &plotter.Grid{Horizontal: line, Vertical: line}
}

// LimitLine returns the style of a limit's line. Its label has LimitColor too.
func LimitLine() draw.LineStyle {
	return draw.LineStyle{Color: LimitColor, Width: 1.25, Dashes: []vg.Length{5, 4}}
}

// HorizontalLimit draws the line of a limit of y across a panel, with its label.
func HorizontalLimit(canvas draw.Canvas, y vg.Length, label string) {
	canvas.StrokeLine2(LimitLine(), canvas.Min.X, y, canvas.Max.X, y)
	canvas.FillText(Text(10, LimitColor), vg.Point{X: canvas.Min.X + 5, Y: y + 3}, label)
}

// Axis sets title, ticks and style of an axis.
func Axis(to *plot.Axis, title string, ticks []plot.Tick) {
	to.Label.Text = title
	to.Label.TextStyle.Font = Sans(11)
	to.Label.TextStyle.Color = Ink
	to.Label.Padding = 5
	to.Tick.Label.Font = Sans(10)
	to.Tick.Label.Color = Soft
	to.Tick.LineStyle.Color = Soft
	to.Tick.LineStyle.Width = 0.75
	to.Tick.Length = 4
	to.Tick.Marker = plot.ConstantTicks(ticks)
	to.LineStyle = draw.LineStyle{Color: Soft, Width: 0.75}
	to.Padding = 0
}

// LinearTicks marks round steps of 1, 2 or 5 times a power of ten. There are about six from 0 to
// most, which must be above 0.
func LinearTicks(most float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10(most/6)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if most/(step*factor) <= 7 {
			step *= factor
			break
		}
	}
	var ticks []plot.Tick
	for i := 0; float64(i)*step <= most; i++ {
		ticks = append(ticks, NumberTick(float64(i)*step))
	}
	return ticks
}

// DecadeTicks marks round numbers of each power of ten in a range above 0, and more of them in a
// short range.
func DecadeTicks(least, most float64) []plot.Tick {
	ticks := stepTicks(least, most, 1, 2, 5)
	switch {
	case len(ticks) < 4:
		return stepTicks(least, most, 1, 1.5, 2, 3, 5, 7)
	case len(ticks) > 12:
		return stepTicks(least, most, 1)
	}
	return ticks
}

func stepTicks(least, most float64, steps ...float64) []plot.Tick {
	var ticks []plot.Tick
	for decade := math.Pow(10, math.Floor(math.Log10(least))); decade <= most; decade *= 10 {
		for _, step := range steps {
			if v := decade * step; v >= least && v <= most {
				ticks = append(ticks, NumberTick(v))
			}
		}
	}
	return ticks
}

// NumberTick labels a number with its digits.
func NumberTick(v float64) plot.Tick {
	return plot.Tick{Value: v, Label: fmt.Sprintf("%.6g", v)}
}
