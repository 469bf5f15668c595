package chart

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"

	"tuner/analyze"
	"tuner/internal/plotstyle"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/report/figures"
	"tuner/search/verdict"
	"tuner/spec/plots"
)

// WriteLatency draws throughput against p99 latency as PNG. Each configuration is a curve in the
// order of its loads. The best ones are coloured. The default and the limits are dashed.
func WriteLatency(w io.Writer, r analyze.Result) error {
	return overLatency(measure.Throughput)(w, r)
}

// overLatency draws a metric against p99 latency as WriteLatency does.
func overLatency(m measure.Metric) func(io.Writer, analyze.Result) error {
	return WritePlot(plots.Plot{Title: figures.Capitalized(verdict.Label(m)) + " against p99 latency", X: measure.LatencyP99, Y: m})
}

// WriteLoads draws throughput against the load, concurrency or request rate, as a PNG picture.
func WriteLoads(w io.Writer, r analyze.Result) error {
	return WritePlot(plots.Plot{Y: measure.Throughput})(w, r)
}

// level returns a point's position on an axis of loads, as figures.Quantity.Of does on one of a metric:
// a logarithmic axis has no place for 0.
func level(p analyze.Point) (float64, bool) { return p.Load.Level(), p.Load.Level() > 0 }

// mostOthers limits the number of grey curves. More cannot be distinguished, and drawing them takes
// long.
const mostOthers = 500

// newChart makes a picture of curves: y axis, curves and legend. The caller adds the x axis.
func newChart(r analyze.Result, title string, y figures.Quantity, x func(analyze.Point) (float64, bool)) picture {
	c := picture{title: title, subtitle: subtitle(r), limits: limitsOf(r, y.Metric, y.Factor, false)}
	var others, prominent []curve
	free := outstanding[:]
	if r.Top > 0 {
		free = free[:min(r.Top, len(free))]
	}
	for _, config := range r.Configs {
		drawn := curve{points: dots(r, config, x, y), look: otherLook}
		switch {
		case len(drawn.points) == 0:
			continue
		case config.Candidate.IsDefault():
			drawn.look = defaultLook
		case len(free) > 0:
			drawn.look, free = free[0], free[1:]
		default:
			others = append(others, drawn)
			continue
		}
		prominent = append(prominent, drawn)
		c.legend = append(c.legend, entry{label: legendLabel(r, config), look: drawn.look})
	}
	c.legend = append(c.legend, keys(r, prominent, len(others))...)
	slices.Reverse(prominent)
	c.curves = append(others[:min(mostOthers, len(others))], prominent...)
	most := c.highest() * 1.12 // leaves space on top for the limit's label
	c.y = axis{title: y.Title, max: most, ticks: plotstyle.LinearTicks(most)}
	return c
}

// dots returns the points of a configuration that were measured on the server of its best point.
func dots(r analyze.Result, config analyze.Config, x func(analyze.Point) (float64, bool), y figures.Quantity) []dot {
	best := figures.First(r)
	var list []dot
	for _, p := range figures.OnServerOf(r, config.Best, config.Points) {
		up, measured := y.Of(p)
		at, ok := x(p)
		if !measured || !ok {
			continue
		}
		list = append(list, dot{
			x: at, y: up, hollow: len(p.Misses) > 0,
			ringed: config.Name == best.Name && best.Best != nil && p.Load == best.Best.Load,
		})
	}
	return list
}

// keys returns the lines of the legend that explain marks and grey curves. It omits those that do
// not occur.
func keys(r analyze.Result, prominent []curve, others int) []entry {
	ring := "best within the constraints"
	if _, found := r.Winner(); !found {
		ring = "nearest to the constraints"
	}
	if len(r.Goal.Constraints) == 0 {
		ring = "best"
	}
	var list []entry
	if others > 0 {
		label := words.Count(others, "other configuration")
		if others > mostOthers {
			label += fmt.Sprintf(", the best %d drawn", mostOthers)
		}
		list = append(list, entry{label: label, look: otherLook})
	}
	for _, c := range prominent {
		if slices.ContainsFunc(c.points, func(d dot) bool { return d.ringed }) {
			list = append(list, entry{label: ring, look: c.look, mark: markRing})
		}
	}
	isHollow := func(c curve) bool { return slices.ContainsFunc(c.points, func(d dot) bool { return d.hollow }) }
	if slices.ContainsFunc(prominent, isHollow) {
		key := look{color: plotstyle.Soft, radius: outstanding[0].radius, sides: outstanding[0].sides}
		list = append(list, entry{label: "misses a constraint", look: key, mark: markHollow})
	}
	return list
}

// limitsOf returns the goal's bounds of a metric, in the chart's unit.
func limitsOf(r analyze.Result, m measure.Metric, factor float64, vertical bool) []limit {
	var list []limit
	for _, c := range r.Goal.Constraints {
		for _, bound := range []*float64{c.Min, c.Max} {
			if c.Metric == m && bound != nil && *bound > 0 {
				list = append(list, limit{label: verdict.ConstraintText(c), value: *bound * factor, vertical: vertical})
			}
		}
	}
	return list
}

// legendLabel describes a configuration. The legend cuts long texts, so the name in the table comes
// first.
func legendLabel(r analyze.Result, c analyze.Config) string {
	if len(r.Served()) > 0 {
		return figures.NameAndSetup(r, c)
	}
	if c.Candidate.IsDefault() {
		return "default: " + figures.SetupText(c.Setup)
	}
	label := c.Candidate.Describe()
	if len([]rune(label)) > legendMost {
		return figures.ShortName(r, c) + ": " + label
	}
	return label
}

// subtitle names the model, the goal, the number of configurations and the server.
func subtitle(r analyze.Result) string {
	parts := []string{r.Header.Model, "goal: " + figures.ObjectiveText(r.Goal.Objective) + figures.Within(r.Goal),
		words.Count(len(r.Configs), "configuration")}
	if r.Failed == r.Trials {
		parts = append(parts, "nothing was measured")
	}
	if s := r.Header.Server; s != nil && s.Name != "" {
		parts = append(parts, s.Name+" "+s.Version)
	} else if text := figures.RuntimesText(r.Header); text != "" {
		parts = append(parts, "ONNX Runtime "+text)
	}
	return strings.Join(parts, "  ·  ")
}

// narrowest is the smallest ratio between the ends of a logarithmic axis.
const narrowest = 6

// extent returns the range of x over curves and limits. It is never empty, and positive.
func (c picture) extent() [2]float64 {
	least, most := math.Inf(1), math.Inf(-1)
	add := func(v float64) { least, most = min(least, v), max(most, v) }
	for _, drawn := range c.curves {
		for _, d := range drawn.points {
			add(d.x)
		}
	}
	for _, l := range c.limits {
		if l.vertical {
			add(l.value)
		}
	}
	if least > most {
		return [2]float64{1, 10}
	}
	return [2]float64{least, most}
}

// highest returns the largest y of curves and limits. It is positive.
func (c picture) highest() float64 {
	most := 0.0
	for _, drawn := range c.curves {
		for _, d := range drawn.points {
			most = max(most, d.y)
		}
	}
	for _, l := range c.limits {
		if !l.vertical {
			most = max(most, l.value)
		}
	}
	if most == 0 {
		return 1
	}
	return most
}

// logAxis makes an axis with some space on both sides of an extent. A narrow extent gets more, so
// that it has ticks.
func logAxis(title string, extent [2]float64, ticks func(least, most float64) []plot.Tick) axis {
	room := max(1.18, math.Sqrt(narrowest*extent[0]/extent[1]))
	a := axis{title: title, log: true, min: extent[0] / room, max: extent[1] * room}
	a.ticks = ticks(a.min, a.max)
	return a
}
