package chart

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tuner/internal/plotstyle"
	"tuner/internal/words"
)

// curve is a configuration's measured points, joined in the order of their loads.
type curve struct {
	points []dot
	look   look
}

// dot is one measured point.
type dot struct {
	x, y   float64
	hollow bool // the point misses a constraint
	ringed bool // the best point of all
}

// look is the style of a curve.
type look struct {
	color  color.RGBA
	width  vg.Length
	dashes []vg.Length
	radius vg.Length // size of the dots
	sides  int       // corners of the dots: 3, 4, or many for a circle
	turn   float64   // rotation of the dots, in radians
}

// The styles of curves: the best ones in their order, the default, and all others.
var (
	outstanding = [...]look{
		{color: palette[0], width: 2, radius: 4, sides: 32},
		{color: palette[1], width: 2, radius: 4.6, sides: 4},
		{color: palette[2], width: 2, radius: 4.8, sides: 3},
		{color: palette[3], width: 2, radius: 4.8, sides: 3, turn: math.Pi},
		{color: palette[4], width: 2, radius: 4.6, sides: 4, turn: math.Pi / 4},
	}
	defaultLook = look{color: plotstyle.Ink, width: 2, radius: 4.6, sides: 4, turn: math.Pi / 4, dashes: []vg.Length{6, 3}}
	otherLook   = look{color: paleColor, width: 1, radius: 2, sides: 16}
)

// Plot implements plot.Plotter.
func (c curve) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	line := make([]vg.Point, len(c.points))
	for i, d := range c.points {
		line[i] = vg.Point{X: x(d.x), Y: y(d.y)}
	}
	c.look.drawLine(canvas, line)
	isHidden := c.hider()
	for i, d := range c.points {
		if !isHidden(d, line[i]) {
			c.look.drawDot(canvas, line[i], d.hollow)
		}
		if d.ringed {
			drawRing(canvas, line[i], 9, c.look.color)
		}
	}
}

// hider returns a function that tells for each dot in turn whether to leave it out. In a curve with
// many dots it leaves out those within a point of a drawn dot. Such dots are invisible, and drawing
// thousands takes seconds.
func (c curve) hider() func(d dot, at vg.Point) bool {
	type place struct {
		x, y   int
		hollow bool
	}
	drawn := map[place]bool{}
	return func(d dot, at vg.Point) bool {
		if len(c.points) <= mostOthers {
			return false
		}
		here := place{int(math.Floor(at.X.Points())), int(math.Floor(at.Y.Points())), d.hollow}
		isHidden := drawn[here]
		drawn[here] = true
		return isHidden
	}
}

// drawLine draws a line, unless the style has no width.
func (l look) drawLine(canvas draw.Canvas, line []vg.Point) {
	if l.width > 0 {
		canvas.StrokeLines(draw.LineStyle{Color: l.color, Width: l.width, Dashes: l.dashes}, line)
	}
}

// drawDot draws a filled or hollow dot, unless the style has no radius.
func (l look) drawDot(canvas draw.Canvas, at vg.Point, hollow bool) {
	if l.radius == 0 {
		return
	}
	shape := polygon(at, l.radius, l.sides, l.turn)
	canvas.SetColor(l.color)
	if hollow {
		canvas.SetColor(color.White)
	}
	canvas.Fill(shape)
	canvas.SetLineStyle(draw.LineStyle{Color: l.color, Width: 1.25})
	canvas.Stroke(shape)
}

// drawRing marks the best point.
func drawRing(canvas draw.Canvas, at vg.Point, radius vg.Length, c color.Color) {
	canvas.SetLineStyle(draw.LineStyle{Color: c, Width: 1.5})
	canvas.Stroke(polygon(at, radius, 48, 0))
}

// polygon returns a regular polygon with a corner on top, turned by an angle.
func polygon(center vg.Point, radius vg.Length, sides int, turn float64) vg.Path {
	var path vg.Path
	for i := range sides {
		angle := turn + math.Pi/2 + 2*math.Pi*float64(i)/float64(sides)
		corner := vg.Point{
			X: center.X + radius*vg.Length(math.Cos(angle)),
			Y: center.Y + radius*vg.Length(math.Sin(angle)),
		}
		if i == 0 {
			path.Move(corner)
		} else {
			path.Line(corner)
		}
	}
	path.Close()
	return path
}

// entry is one line of a legend.
type entry struct {
	label string
	look  look
	mark  mark
}

// mark is the sign before a name in a legend.
type mark int

const (
	markCurve  mark = iota // a piece of the curve
	markHollow             // a hollow dot
	markRing               // the ring around the best
	markNone               // nothing: the name continues the line above
)

const (
	legendThumb  = 26 * vg.Length(1)
	legendLine   = 17 * vg.Length(1)
	legendSize   = 10
	legendMost   = 46 // letters of a label; longer labels are cut
	legendIndent = legendThumb + 7
)

// legendWidth returns the width of the legend.
func legendWidth(entries []entry) vg.Length {
	style := plotstyle.Text(legendSize, plotstyle.Ink)
	width := vg.Length(0)
	for _, e := range entries {
		width = max(width, legendIndent+style.Width(shorten(e.label)))
	}
	return width
}

// drawLegend lists the entries from the top.
func drawLegend(canvas draw.Canvas, entries []entry) {
	style := plotstyle.Text(legendSize, plotstyle.Ink)
	for i, e := range entries {
		y := canvas.Max.Y - legendLine*(vg.Length(i)+0.5)
		left := vg.Point{X: canvas.Min.X, Y: y}
		middle := vg.Point{X: left.X + legendThumb/2, Y: y}
		switch e.mark {
		case markCurve:
			e.look.drawLine(canvas, []vg.Point{left, {X: left.X + legendThumb, Y: y}})
			e.look.drawDot(canvas, middle, false)
		case markHollow:
			e.look.drawDot(canvas, middle, true)
		case markRing:
			drawRing(canvas, middle, 6, e.look.color)
		}
		canvas.FillText(style, vg.Point{X: left.X + legendIndent, Y: y - 3.5}, shorten(e.label))
	}
}

// shorten cuts a label that would push the chart aside.
func shorten(label string) string { return words.Shorten(label, legendMost) }
