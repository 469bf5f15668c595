package ortsweep

import (
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tuner/internal/plotstyle"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/ortsweep/race"
)

// The chart's layout; lengths are in points.
const (
	barHeight  = 22 * vg.Length(1)
	labelWidth = 330 * vg.Length(1)
	mostBars   = 24
	mostLabel  = 68 // characters
)

// The colours of bars.
var (
	winnerColor  = plotstyle.Green
	tiedColor    = plotstyle.SkyBlue
	aheadColor   = plotstyle.Orange
	defaultColor = color.RGBA{0x8a, 0x92, 0x9b, 0xff}
	otherColor   = color.RGBA{0xd3, 0xd7, 0xdc, 0xff}
)

// bar is a candidate's bar in the chart.
type bar struct {
	label string
	value string // for people
	race.Standing
}

// WriteChart draws the candidates' figures as a PNG picture: bars with their 95 % intervals, the
// best on top.
func WriteChart(w io.Writer, r Result) error {
	var bars []bar
	for _, s := range r.Race.Standings {
		if s.Verdict != race.Failed && len(bars) < mostBars {
			bars = append(bars, bar{words.Shorten(SettingText(s.Candidate), mostLabel), r.Setup.ValueText(s.Value.Value), s})
		}
	}
	height := 132 + barHeight*vg.Length(max(1, len(bars)))
	return plotstyle.Write(w, height, func(canvas draw.Canvas) {
		plotstyle.Title(canvas, "Session settings of "+r.Setup.Subject.Name, words.Shorten(r.headline(), 130))
		drawLegend(canvas, bars)
		drawBars(draw.Crop(canvas, plotstyle.Margin, -plotstyle.Margin, plotstyle.Margin, -82), bars, r.factor(), r.axisTitle())
	})
}

// drawLegend explains the occurring colours, the lines and the order below the title.
func drawLegend(canvas draw.Canvas, bars []bar) {
	style := plotstyle.Text(9, plotstyle.Soft)
	style.YAlign = text.YCenter
	at := vg.Point{X: plotstyle.Margin, Y: canvas.Max.Y - plotstyle.Margin - 48}
	const side = 9 * vg.Length(1)
	for _, kind := range []struct {
		color color.Color
		label string
	}{{winnerColor, "the answer"}, {defaultColor, "default"}, {aheadColor, "ahead, unproven"}, {tiedColor, "tied with the answer"},
		{otherColor, "slower, or dropped early"}} {
		if !slices.ContainsFunc(bars, func(b bar) bool { return barColor(b.Standing) == kind.color }) {
			continue
		}
		half := side / 2
		canvas.FillPolygon(kind.color, []vg.Point{{X: at.X, Y: at.Y - half}, {X: at.X + side, Y: at.Y - half}, {X: at.X + side, Y: at.Y + half}, {X: at.X, Y: at.Y + half}})
		canvas.FillText(style, vg.Point{X: at.X + side + 4, Y: at.Y}, kind.label)
		at.X += side + 4 + style.Width(kind.label) + 14
	}
	canvas.FillText(style, at, "lines: 95 % intervals, none for a single window; ordered by gain within rounds")
}

// factor returns the factor from the figures' base unit to the axis's unit.
func (r Result) factor() float64 {
	if r.Setup.Unit() == measure.Seconds {
		return 1e3
	}
	return 1
}

func (r Result) axisTitle() string {
	if r.Setup.Unit() == measure.Seconds {
		return fmt.Sprintf("Compute time of one execution (ms), batch %d; shorter is better", r.Setup.Sweep.Batch)
	}
	return fmt.Sprintf("Rows per second, batch %d, %s; longer is better", r.Setup.Sweep.Batch, words.Count(r.Setup.Sweep.Sessions, "session"))
}

// drawBars draws labels on the left and bars on the right. Without candidates there is only the
// axis.
func drawBars(canvas draw.Canvas, bars []bar, factor float64, title string) {
	most := reach(bars) * factor
	p := plot.New()
	p.BackgroundColor = color.Transparent
	p.X.Label.Text = title
	p.X.Label.TextStyle.Font, p.X.Label.TextStyle.Color = plotstyle.Sans(10), plotstyle.Ink
	p.X.Tick.Label.Font, p.X.Tick.Label.Color = plotstyle.Sans(9), plotstyle.Soft
	p.X.Tick.LineStyle.Color, p.X.LineStyle.Color = plotstyle.Soft, plotstyle.Soft
	p.X.Tick.Marker = plot.ConstantTicks(plotstyle.LinearTicks(most))
	p.X.Padding, p.Y.Padding = 0, 0
	p.HideY()
	grid := plotstyle.Grid()
	grid.Horizontal.Width = 0
	p.Add(grid, barPlot{bars, factor})
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, most*1.02, 0, float64(max(1, len(bars)))
	body := draw.Crop(canvas, labelWidth, -8, 0, 0)
	p.Draw(body)
	data := p.DataCanvas(body)
	_, y := p.Transforms(&data)
	style := plotstyle.Text(9.5, plotstyle.Ink)
	style.XAlign, style.YAlign = text.XRight, text.YCenter
	for i, b := range bars {
		canvas.FillText(style, vg.Point{X: data.Min.X - 8, Y: y(rowOf(i, len(bars)))}, b.label)
	}
}

// mostReach limits a bar's length to a multiple of the longer one of default and answer. A single
// bad setting must not make the others too short to compare.
const mostReach = 3

// reach returns the largest value of the axis, with space for intervals.
func reach(bars []bar) float64 {
	most, limit := 0.0, 0.0
	for _, b := range bars {
		most = max(most, b.Value.Value, min(b.Value.Hi, 1.5*b.Value.Value))
		if b.Candidate.IsDefault() || b.Verdict == race.Winner {
			limit = max(limit, mostReach*b.Value.Value)
		}
	}
	switch {
	case most == 0:
		return 1
	case limit > 0:
		return min(most, limit)
	}
	return most
}

// rowOf returns the middle of a bar's row. The first row is on top.
func rowOf(i, n int) float64 { return float64(n-i) - 0.5 }

// barPlot draws the bars. It is a plot.Plotter.
type barPlot struct {
	bars   []bar
	factor float64
}

// Plot implements plot.Plotter.
func (b barPlot) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	half := barHeight * 0.32
	style := plotstyle.Text(9, plotstyle.Ink)
	style.XAlign, style.YAlign = text.XRight, text.YCenter
	for i, s := range b.bars {
		at, end := y(rowOf(i, len(b.bars))), min(x(s.Value.Value*b.factor), canvas.Max.X)
		canvas.FillPolygon(barColor(s.Standing), []vg.Point{{X: x(0), Y: at - half}, {X: end, Y: at - half}, {X: end, Y: at + half}, {X: x(0), Y: at + half}})
		switch {
		case s.Value.Value*b.factor > p.X.Max: // the bar is cut
			canvas.FillText(style, vg.Point{X: end - 6, Y: at}, s.value+" →")
			continue
		case s.Value.Hi == s.Value.Lo: // a single window has no interval
			continue
		}
		lo, hi := x(max(0, s.Value.Lo*b.factor)), x(s.Value.Hi*b.factor)
		line := draw.LineStyle{Color: plotstyle.Ink, Width: 1}
		canvas.StrokeLine2(line, lo, at-3, lo, at+3)
		if edge := canvas.Max.X; hi > edge { // it continues beyond the chart
			canvas.StrokeLine2(line, lo, at, edge, at)
			canvas.StrokeLines(line, []vg.Point{{X: edge - 4, Y: at - 3}, {X: edge, Y: at}, {X: edge - 4, Y: at + 3}})
			continue
		}
		canvas.StrokeLine2(line, lo, at, hi, at)
		canvas.StrokeLine2(line, hi, at-3, hi, at+3)
	}
}

func barColor(s race.Standing) color.Color {
	switch {
	case s.Verdict == race.Winner:
		return winnerColor
	case s.Candidate.IsDefault():
		return defaultColor
	case s.Verdict == race.Ahead:
		return aheadColor
	case s.Verdict == race.Tied:
		return tiedColor
	}
	return otherColor
}
