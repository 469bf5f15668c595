package output

import (
	"image/color"
	"math"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tuner/internal/plotstyle"
	"tuner/measure"
	"tuner/perf"
)

// curve is a level in the picture.
type curve struct {
	load       measure.Load
	color      color.Color
	points     []point
	end        float64 // of the last window, in seconds since the run's beginning
	shades     []shade
	latency    measure.Histogram
	throughput float64 // infer/s
}

// point is a sub-window: its middle in seconds since the run's beginning, and its latencies in ms.
type point struct{ at, p50, p99 float64 }

// shade is a window with flags, in seconds since the run's beginning.
type shade struct {
	from, to float64
	flags    string
}

// seriesOf makes a curve for each level with windows.
func seriesOf(r perf.Report) []curve {
	var series []curve
	for _, l := range r.Levels {
		if len(l.Measurement.Windows) == 0 {
			continue
		}
		c := curve{
			load: l.Load, color: levelColors[len(series)%len(levelColors)], latency: totalOf(l.Measurement).latency,
			throughput: estimate(l.Measurement, measure.Throughput).Value,
		}
		begin := l.Begin.Sub(r.Levels[0].Begin)
		for _, w := range l.Measurement.Windows {
			c.points = append(c.points, pointsOf(w, begin)...)
			c.end = (begin + w.Start + w.Duration).Seconds()
			if len(w.Flags) > 0 {
				from := begin + w.Start
				c.shades = append(c.shades, shade{from.Seconds(), (from + w.Duration).Seconds(), flagNames(w.Flags)})
			}
		}
		series = append(series, c)
	}
	return series
}

// pointsOf returns the sub-windows of a window that have answers.
func pointsOf(w measure.Window, begin time.Duration) []point {
	var points []point
	at := begin + w.Start
	for _, s := range w.Sub {
		length := s.Duration
		if length == 0 {
			length = w.Duration / time.Duration(len(w.Sub))
		}
		if s.Latency.Count() > 0 {
			points = append(points, point{(at + length/2).Seconds(), millisOf(s.Latency.Quantile(0.5)), millisOf(s.Latency.Quantile(0.99))})
		}
		at += length
	}
	return points
}

func flagNames(flags []measure.Flag) string {
	names := make([]string, len(flags))
	for i, f := range flags {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// reach returns the right end of the curve on the axis of percentiles: the largest of n latencies.
func (c curve) reach() float64 { return math.Log10(float64(max(1, c.latency.Count()))) }

// shades draws the flagged windows.
type shades []curve

// Plot implements plot.Plotter.
func (s shades) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&canvas)
	style := plotstyle.Text(8, plotstyle.Soft)
	for _, c := range s {
		for _, w := range c.shades {
			from, to := x(w.from), x(w.to)
			canvas.FillPolygon(flagColor, []vg.Point{{X: from, Y: canvas.Min.Y}, {X: to, Y: canvas.Min.Y}, {X: to, Y: canvas.Max.Y}, {X: from, Y: canvas.Max.Y}})
			if style.Width(w.flags)+6 <= to-from {
				canvas.FillText(style, vg.Point{X: from + 3, Y: canvas.Max.Y - 10}, w.flags)
			}
		}
	}
}

// overTime draws the points of each level, joined.
type overTime []curve

// Plot implements plot.Plotter.
func (o overTime) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	for _, c := range o {
		var median, tail []vg.Point
		for _, at := range c.points {
			median = append(median, vg.Point{X: x(at.at), Y: y(at.p50)})
			tail = append(tail, vg.Point{X: x(at.at), Y: y(at.p99)})
		}
		canvas.StrokeLines(draw.LineStyle{Color: c.color, Width: 0.75}, tail)
		canvas.StrokeLines(draw.LineStyle{Color: c.color, Width: 2}, median)
	}
}

// byPercentile draws the distribution of each level.
type byPercentile []curve

// Plot implements plot.Plotter.
func (b byPercentile) Plot(canvas draw.Canvas, p *plot.Plot) {
	const steps = 200
	x, y := p.Transforms(&canvas)
	for _, c := range b {
		if c.latency.Count() == 0 {
			continue
		}
		line := make([]vg.Point, steps+1)
		for i := range line {
			nines := c.reach() * float64(i) / steps
			line[i] = vg.Point{X: x(nines), Y: y(millisOf(c.latency.Quantile(1 - math.Pow(10, -nines))))}
		}
		canvas.StrokeLines(draw.LineStyle{Color: c.color, Width: 1.75}, line)
	}
}
