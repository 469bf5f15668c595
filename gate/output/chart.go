package output

import (
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/internal/plotstyle"
	"tuner/internal/words"
	"tuner/measure"
)

// The layout of the chart.
const (
	panelHeight  = 180 * vg.Length(1)
	mostPanels   = 4
	mostGates    = 100 // of the history, the latest ones
	legendHeight = 18 * vg.Length(1)
)

// WriteChart draws the history as a PNG picture with a panel for each metric. A panel shows the
// metric's value in each gate. Colour and shape show its verdict, and a dash the gate's baseline.
func WriteChart(w io.Writer, r Report) error {
	history := r.related()
	history = history[max(0, len(history)-mostGates):]
	metrics := r.Setup.Spec.AllMetrics()
	metrics = metrics[:min(len(metrics), mostPanels)]
	height := plotstyle.TitleHeight + legendHeight + 2*plotstyle.Margin + panelHeight*vg.Length(max(1, len(metrics)))
	return plotstyle.Write(w, height, func(canvas draw.Canvas) {
		plotstyle.Title(canvas, "Gates of "+r.Setup.Spec.Name, fmt.Sprintf("%s  ·  %s  ·  the latest on the right", r.Setup.LoadText(), words.Count(len(history), "gate")))
		body := draw.Crop(canvas, plotstyle.Margin, -plotstyle.Margin, plotstyle.Margin, -plotstyle.TitleHeight)
		drawVerdicts(body)
		body = draw.Crop(body, 0, 0, 0, -legendHeight)
		for i, metric := range metrics {
			top := -vg.Length(i) * panelHeight
			drawPanel(draw.Crop(body, 0, 0, body.Size().Y-panelHeight*vg.Length(i+1)+8, top), metric, history)
		}
	})
}

// glyphOf returns the mark of a verdict. Shape and colour both identify it.
func glyphOf(v decide.Verdict) draw.GlyphStyle {
	switch v {
	case decide.Pass:
		return draw.GlyphStyle{Color: plotstyle.Blue, Radius: 3.5, Shape: draw.CircleGlyph{}}
	case decide.Fail:
		return draw.GlyphStyle{Color: plotstyle.Vermillion, Radius: 3.5, Shape: draw.BoxGlyph{}}
	case decide.Inconclusive:
	}
	return draw.GlyphStyle{Color: plotstyle.Soft, Radius: 4.5, Shape: draw.PyramidGlyph{}}
}

// drawVerdicts draws the legend.
func drawVerdicts(canvas draw.Canvas) {
	style := plotstyle.Text(10, plotstyle.Ink)
	at := vg.Point{X: canvas.Min.X + 5, Y: canvas.Max.Y - 8}
	for _, v := range []decide.Verdict{decide.Pass, decide.Fail, decide.Inconclusive} {
		canvas.DrawGlyph(glyphOf(v), at)
		canvas.FillText(style, vg.Point{X: at.X + 9, Y: at.Y - 3.5}, string(v))
		at.X += 24 + style.Width(string(v))
	}
	canvas.StrokeLine2(baselineStyle(), at.X, at.Y, at.X+14, at.Y)
	canvas.FillText(style, vg.Point{X: at.X + 20, Y: at.Y - 3.5}, "baseline")
}

func baselineStyle() draw.LineStyle { return draw.LineStyle{Color: plotstyle.Soft, Width: 1.5} }

// series is a metric's values over the history, in the unit of its axis. It is a plot.Plotter.
type series struct {
	points []point
}

type point struct {
	x, candidate, baseline float64 // baseline 0: none
	verdict                decide.Verdict
}

// axisOf returns a metric's axis title, and the factor for its values.
func axisOf(m measure.Metric) (title string, factor float64) {
	info, _ := m.Info()
	switch info.Unit {
	case measure.Seconds:
		return string(m) + " (ms)", 1e3
	case measure.Bytes:
		return string(m) + " (MB)", 1e-6
	}
	return fmt.Sprintf("%s (%s)", m, info.Unit), 1
}

func newSeries(metric measure.Metric, factor float64, history []gate.Record) series {
	var s series
	for i, record := range history {
		f, ok := record.Metrics[metric]
		if !ok {
			continue
		}
		p := point{x: float64(i + 1), candidate: factor * f.Candidate, verdict: record.VerdictOn(metric)}
		if f.Baseline != nil {
			p.baseline = factor * *f.Baseline
		}
		s.points = append(s.points, p)
	}
	return s
}

// Plot implements plot.Plotter.
func (s series) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	line := make([]vg.Point, len(s.points))
	for i, at := range s.points {
		line[i] = vg.Point{X: x(at.x), Y: y(at.candidate)}
		if at.baseline > 0 {
			canvas.StrokeLine2(baselineStyle(), line[i].X-6, y(at.baseline), line[i].X+6, y(at.baseline))
		}
	}
	canvas.StrokeLines(draw.LineStyle{Color: plotstyle.SkyBlue, Width: 1.5}, line)
	for i, at := range s.points {
		canvas.DrawGlyph(glyphOf(at.verdict), line[i])
	}
}

// drawPanel draws a metric's panel. Its axis begins at 0, so that small changes look small.
func drawPanel(canvas draw.Canvas, metric measure.Metric, history []gate.Record) {
	title, factor := axisOf(metric)
	s := newSeries(metric, factor, history)
	most := 0.0
	for _, p := range s.points {
		most = max(most, p.candidate, p.baseline)
	}
	if most == 0 {
		most = 1
	}
	most *= 1.1
	p := plot.New()
	p.BackgroundColor = color.Transparent
	plotstyle.Axis(&p.Y, title, plotstyle.LinearTicks(most))
	ticks := plotstyle.LinearTicks(float64(max(2, len(history))))
	plotstyle.Axis(&p.X, "", slices.DeleteFunc(ticks, func(t plot.Tick) bool { return t.Value != float64(int(t.Value)) || t.Value == 0 }))
	p.Add(plotstyle.Grid(), s)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, float64(max(2, len(history)))+0.5, 0, most
	p.Draw(canvas)
}
