package output

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tuner/internal/plotstyle"
	"tuner/measure"
	"tuner/perf"
)

// The layout of the picture. Lengths are in points.
const (
	pictureHeight = 640 * vg.Length(1)
	legendWidth   = 178 * vg.Length(1)
	entryHeight   = 30 * vg.Length(1)
	mostEntries   = 17 // entries of the legend
)

// The colours of the curves, and of flagged windows.
var (
	levelColors = []color.RGBA{plotstyle.Blue, plotstyle.Vermillion, plotstyle.Green, plotstyle.Purple, plotstyle.SkyBlue, plotstyle.Orange}
	flagColor   = color.RGBA{0xfb, 0xee, 0xd0, 0xff}
)

// Plot draws a PNG picture with two panels. The upper one has median and 99th percentile of each
// sub-window's latencies over the time of the run, and the flagged windows. The lower one has the
// latencies of the levels by percentile. Latencies are in ms on a logarithmic axis, the same for
// both.
func Plot(w io.Writer, r perf.Report) error {
	return plotstyle.Write(w, pictureHeight, func(canvas draw.Canvas) {
		series := seriesOf(r)
		plotstyle.Title(canvas, "Latency of "+r.Settings.Model, subtitleOf(r.Settings))
		body := draw.Crop(canvas, plotstyle.Margin, -plotstyle.Margin, plotstyle.Margin, -plotstyle.TitleHeight)
		drawEntries(draw.Crop(body, body.Size().X-legendWidth, 0, 0, 0), series)
		panels := draw.Crop(body, 0, -legendWidth-16, 0, 0)
		half := panels.Size().Y / 2
		latency := latencyAxis(series, millisOf(r.Settings.LatencyLimit))
		drawOverTime(draw.Crop(panels, 0, 0, half+8, 0), series, latency)
		drawByPercentile(draw.Crop(panels, 0, 0, 0, -half-8), series, latency)
	})
}

// subtitleOf says what a latency means here.
func subtitleOf(s perf.Settings) string {
	origin := "closed loop: counted from the sending"
	if s.Mode != perf.ModeConcurrency {
		origin = "open loop: counted from the scheduled instant"
	}
	return fmt.Sprintf("%s  ·  batch %d  ·  %s", s.Protocol, s.Batch, origin)
}

// drawEntries lists the levels with their figures.
func drawEntries(canvas draw.Canvas, series []curve) {
	name, figures := plotstyle.Text(10, plotstyle.Ink), plotstyle.Text(9, plotstyle.Soft)
	y := canvas.Max.Y - 10
	for i, c := range series {
		if i == mostEntries-1 && len(series) > mostEntries {
			canvas.FillText(figures, vg.Point{X: canvas.Min.X + 24, Y: y - 3}, fmt.Sprintf("and %d more", len(series)-i))
			return
		}
		canvas.StrokeLine2(draw.LineStyle{Color: c.color, Width: 2.5}, canvas.Min.X, y, canvas.Min.X+18, y)
		canvas.FillText(name, vg.Point{X: canvas.Min.X + 24, Y: y - 3}, c.load.String())
		canvas.FillText(figures, vg.Point{X: canvas.Min.X + 24, Y: y - 15}, c.figures())
		y -= entryHeight
	}
}

// axis is the range of latencies in ms.
type axis struct{ least, most, limit float64 }

// latencyAxis returns an axis for all latencies and the limit, with a margin.
func latencyAxis(series []curve, limit float64) axis {
	least, most := math.Inf(1), 0.0
	if limit > 0 {
		least, most = limit, limit
	}
	for _, c := range series {
		if c.latency.Count() > 0 {
			least, most = min(least, millisOf(c.latency.Rank(1))), max(most, millisOf(c.latency.Rank(c.latency.Count())))
		}
	}
	if most == 0 {
		least, most = 1, 10
	}
	return axis{least: least / 1.2, most: most * 1.2, limit: limit}
}

// newPlot returns an empty panel with the axis of latencies.
func newPlot(title string, latency axis) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	p.Title.Text = title
	p.Title.TextStyle.Font, p.Title.TextStyle.Color = plotstyle.Sans(11), plotstyle.Ink
	p.Title.Padding = 6
	plotstyle.Axis(&p.Y, "Latency (ms)", plotstyle.DecadeTicks(latency.least, latency.most))
	p.Y.Scale = plot.LogScale{}
	return p
}

// drawPanel adds grid, limit and data to a panel and draws it.
func drawPanel(canvas draw.Canvas, p *plot.Plot, latency axis, most float64, background, data plot.Plotter) {
	p.Add(background, plotstyle.Grid(), data, limitLine(latency.limit))
	// adding plotters may have widened the ranges
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, most, latency.least, latency.most
	p.Draw(canvas)
}

// drawOverTime draws the latencies over the time of the run.
func drawOverTime(canvas draw.Canvas, series []curve, latency axis) {
	p := newPlot("Over time: median (thick) and 99th percentile (thin) of each sub-window; shaded: windows with a flag", latency)
	most := 1.0
	for _, c := range series {
		most = max(most, c.end)
	}
	plotstyle.Axis(&p.X, "Time (s)", plotstyle.LinearTicks(most))
	drawPanel(canvas, p, latency, most, shades(series), overTime(series))
}

// drawByPercentile draws the distributions of the levels. The axis is logarithmic in the share of
// slower requests, so that each step to the right has a tenth of them.
func drawByPercentile(canvas draw.Canvas, series []curve, latency axis) {
	p := newPlot("By percentile: this share of the requests was at least as fast", latency)
	most := 2.0
	for _, c := range series {
		most = max(most, c.reach())
	}
	plotstyle.Axis(&p.X, "Percentile", percentileTicks(most))
	drawPanel(canvas, p, latency, most, shades(nil), byPercentile(series))
}

// percentileTicks marks 0, 50, 90, 99, 99.9 … %.
func percentileTicks(most float64) []plot.Tick {
	ticks := []plot.Tick{{Value: 0, Label: "0 %"}, {Value: math.Log10(2), Label: "50 %"}}
	for nines := 1; float64(nines) <= most; nines++ {
		label := fmt.Sprintf("%.*f %%", max(0, nines-2), 100*(1-math.Pow(10, -float64(nines))))
		ticks = append(ticks, plot.Tick{Value: float64(nines), Label: label})
	}
	return ticks
}

func millisOf(d time.Duration) float64 { return d.Seconds() * 1e3 }

// limitLine draws the latency limit in ms. 0: no limit.
type limitLine float64

// Plot implements plot.Plotter.
func (l limitLine) Plot(canvas draw.Canvas, p *plot.Plot) {
	if l == 0 {
		return
	}
	_, y := p.Transforms(&canvas)
	plotstyle.HorizontalLimit(canvas, y(float64(l)), "limit")
}

// figures returns a level's throughput and 99th percentile as text.
func (c curve) figures() string {
	if c.latency.Count() == 0 {
		return "no request was answered"
	}
	return measure.Throughput.Format(c.throughput) + ", p99 " + measure.LatencyP99.Format(c.latency.Quantile(0.99).Seconds())
}
