package chart

import (
	"image/color"
	"io"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tuner/analyze"
	"tuner/internal/plotstyle"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/report/figures"
)

// part is one part of a request's mean latency.
type part struct {
	name  string
	color color.RGBA
	of    func(analyze.Point) float64 // s
}

// latencyParts lists the parts in the order in which a request meets them. The last part is the
// time that the server does not account for.
func latencyParts() []part {
	metric := func(m measure.Metric) func(analyze.Point) float64 {
		return func(p analyze.Point) float64 { return p.Values[m].Value }
	}
	return []part{
		{"queue", plotstyle.Orange, metric(measure.QueueTime)},
		{"compute input", plotstyle.SkyBlue, metric(measure.ComputeInput)},
		{"compute infer", plotstyle.Blue, metric(measure.ComputeInfer)},
		{"compute output", plotstyle.Green, metric(measure.ComputeOutput)},
		{"client, wire, front end", paleColor, outside},
	}
}

func outside(p analyze.Point) float64 {
	rest := p.Values[measure.LatencyAvg].Value
	for _, m := range []measure.Metric{measure.QueueTime, measure.ComputeInput, measure.ComputeInfer, measure.ComputeOutput} {
		rest -= p.Values[m].Value
	}
	return max(0, rest)
}

// bar is one load of a configuration.
type bar struct {
	label      string    // the load
	parts      []float64 // ms, by latencyParts
	throughput string
}

// bars is a panel's plotter: a bar for each load, at 0, 1, 2 …
type bars []bar

// barsOf returns the loads that were measured on the server of the best configuration. It leaves
// out loads without the server's statistics.
func barsOf(r analyze.Result, c analyze.Config) bars {
	var list bars
	for _, p := range figures.OnServerOf(r, figures.First(r).Best, c.Points) {
		if _, told := p.Values[measure.QueueTime]; !told {
			continue
		}
		b := bar{label: strconv.FormatFloat(p.Load.Level(), 'g', 4, 64)}
		for _, part := range latencyParts() {
			b.parts = append(b.parts, part.of(p)*1e3)
		}
		if e, ok := p.Values[measure.Throughput]; ok {
			b.throughput = strconv.FormatFloat(e.Value, 'f', measure.ThroughputDecimals(e.Value, 0), 64)
		}
		list = append(list, b)
	}
	return list
}

func (b bar) height() float64 {
	sum := 0.0
	for _, p := range b.parts {
		sum += p
	}
	return sum
}

// breakdownHeight is 650 CSS pixels, in points.
const breakdownHeight = chartHeight

// WriteBreakdown draws where the mean latency goes at each load as PNG. The best configuration (or
// the nearest) and the default stand side by side on one scale. The numbers on the bars are
// throughputs.
func WriteBreakdown(w io.Writer, r analyze.Result) error {
	var shown []analyze.Config
	if len(r.Configs) > 0 {
		shown = append(shown, r.Configs[0])
	}
	if len(shown) > 0 && !shown[0].Candidate.IsDefault() {
		shown = append(shown, r.Default())
	}
	most := 0.0
	for _, c := range shown {
		for _, b := range barsOf(r, c) {
			most = max(most, b.height())
		}
	}
	return plotstyle.Write(w, breakdownHeight, func(canvas draw.Canvas) {
		plotstyle.Title(canvas, "Where the mean latency goes", subtitle(r))
		body := draw.Crop(canvas, plotstyle.Margin, -plotstyle.Margin, plotstyle.Margin, -plotstyle.TitleHeight)
		drawPartsLegend(body)
		body = draw.Crop(body, 0, 0, 0, -legendLine-8)
		if most == 0 {
			style := plotstyle.Text(11, plotstyle.Soft)
			style.XAlign, style.YAlign = text.XCenter, text.YCenter
			canvas.FillText(style, body.Center(), "the server's statistics are missing")
			return
		}
		for i, c := range shown {
			width := body.Size().X / vg.Length(len(shown))
			drawBars(draw.Crop(body, vg.Length(i)*width+4, -vg.Length(len(shown)-1-i)*width-4, 0, 0), r, c, most)
		}
	})
}

// drawPartsLegend names the colours in one line on top.
func drawPartsLegend(canvas draw.Canvas) {
	style := plotstyle.Text(legendSize, plotstyle.Ink)
	at := vg.Point{X: canvas.Min.X + 4, Y: canvas.Max.Y - legendLine/2}
	for _, p := range latencyParts() {
		canvas.FillPolygon(p.color, []vg.Point{{X: at.X, Y: at.Y - 4}, {X: at.X + 10, Y: at.Y - 4}, {X: at.X + 10, Y: at.Y + 4}, {X: at.X, Y: at.Y + 4}})
		canvas.FillText(style, vg.Point{X: at.X + 14, Y: at.Y - 3.5}, p.name)
		at.X += 14 + style.Width(p.name) + 16
	}
	canvas.FillText(plotstyle.Text(legendSize, plotstyle.Soft), vg.Point{X: at.X, Y: at.Y - 3.5}, "numbers: infer/s")
}

// panelName names the configuration of a panel.
func panelName(r analyze.Result, c analyze.Config) string {
	switch {
	case c.Candidate.IsDefault():
		return legendLabel(r, c)
	case c.Satisfies():
		return "best: " + bestLabel(r, c)
	}
	return "nearest: " + bestLabel(r, c)
}

// drawBars draws a panel.
func drawBars(canvas draw.Canvas, r analyze.Result, c analyze.Config, most float64) {
	list := barsOf(r, c)
	style := plotstyle.Text(11, plotstyle.Ink)
	style.YAlign = text.YTop
	canvas.FillText(style, vg.Point{X: canvas.Min.X, Y: canvas.Max.Y}, words.Shorten(panelName(r, c), legendMost+10))
	p := plot.New()
	p.BackgroundColor = color.Transparent
	plotstyle.Axis(&p.X, loadAxis(r).title, list.ticks(canvas.Size().X))
	plotstyle.Axis(&p.Y, "Mean latency (ms)", plotstyle.LinearTicks(most*1.12))
	p.Y.LineStyle.Width, p.Y.Tick.Length = 0, 0
	grid := plotstyle.Grid()
	grid.Vertical.Width = 0
	p.Add(grid, list)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.7, max(float64(len(list))-0.3, 0.7), 0, most*1.12
	p.Draw(draw.Crop(canvas, 0, 0, 0, -20))
}

// labelRoom is the space for a label of an axis or a bar, in points.
const labelRoom = 30

// every returns how many bars share one label, so that labels do not overlap.
func (b bars) every(width vg.Length) int {
	return max(1, int(float64(len(b))*labelRoom/float64(width))+1)
}

// ticks labels the loads.
func (b bars) ticks(width vg.Length) []plot.Tick {
	every := b.every(width * 0.85)
	ticks := make([]plot.Tick, len(b))
	for i, one := range b {
		ticks[i] = plot.Tick{Value: float64(i)}
		if i%every == 0 {
			ticks[i].Label = one.label
		}
	}
	return ticks
}

// Plot implements plot.Plotter.
func (b bars) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	style := plotstyle.Text(9, plotstyle.Ink)
	style.XAlign = text.XCenter
	every := b.every(canvas.Size().X)
	for i, one := range b {
		left, right := x(float64(i)-0.36), x(float64(i)+0.36)
		low := 0.0
		for j, part := range latencyParts() {
			high := low + one.parts[j]
			canvas.FillPolygon(part.color, []vg.Point{{X: left, Y: y(low)}, {X: right, Y: y(low)}, {X: right, Y: y(high)}, {X: left, Y: y(high)}})
			low = high
		}
		if i%every == 0 {
			canvas.FillText(style, vg.Point{X: (left + right) / 2, Y: y(low) + 3}, one.throughput)
		}
	}
}
