package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"

	"tuner/analyze"
	"tuner/internal/plotstyle"
	"tuner/journal"
	"tuner/measure"
	"tuner/search/verdict"
	"tuner/spec"
)

// WriteLatencyChart draws throughput against p99 latency as a PNG picture: each configuration's points in the order of
// their loads, the best ones coloured, the default dashed, the constraints' limits as dashed lines.
func WriteLatencyChart(w io.Writer, r analyze.Result) error {
	return chartOverLatency(measure.Throughput)(w, r)
}

// chartOverLatency draws a metric against p99 latency as WriteLatencyChart does.
func chartOverLatency(m measure.Metric) func(io.Writer, analyze.Result) error {
	return WritePlot(spec.Plot{Title: capitalized(verdict.Label(m)) + " against p99 latency", X: measure.LatencyP99, Y: m})
}

// WriteLoadChart draws throughput against the load, concurrency or request rate, as a PNG picture.
func WriteLoadChart(w io.Writer, r analyze.Result) error {
	return WritePlot(spec.Plot{Y: measure.Throughput})(w, r)
}

func capitalized(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// level is a point's place on an axis of loads.
func level(p analyze.Point) (float64, bool) { return p.Load.Level(), true }

// mostOthers is how many curves are drawn in grey: more cannot be told apart, and take long.
const mostOthers = 500

// newChart makes what the charts of curves have in common: y, the curves and their legend.
func newChart(r analyze.Result, title string, y quantity, x func(analyze.Point) (float64, bool)) chart {
	c := chart{title: title, subtitle: subtitle(r), limits: limitsOf(r, y.metric, y.factor, false)}
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
	most := c.highest() * 1.12 // leaves a band free on top for the limit's label
	c.y = axis{title: y.title, max: most, ticks: plotstyle.LinearTicks(most)}
	return c
}

// firstOf is the best configuration, or the nearest to satisfying the constraints; nothing where none was tried.
func firstOf(r analyze.Result) analyze.Config {
	if len(r.Configs) == 0 {
		return analyze.Config{}
	}
	return r.Configs[0]
}

// dots are a configuration's points, of the server that it is ranked by: a curve of two servers would be of neither.
func dots(r analyze.Result, config analyze.Config, x func(analyze.Point) (float64, bool), y quantity) []dot {
	best := firstOf(r)
	var list []dot
	for _, p := range onServerOf(r, config.Best, config.Points) {
		up, measured := y.of(p)
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

// keys are the legend's lines about everything but single configurations, as far as they occur.
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
		label := count(others, "other configuration")
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

// limitsOf are the bounds of a metric in the goal, in the chart's unit.
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

// legendLabel names a configuration in a few words; where these will be cut, the name in the table tells it from others.
func legendLabel(r analyze.Result, c analyze.Config) string {
	if c.Candidate.IsDefault() {
		return "default: " + setupText(c.Setup)
	}
	label := c.Candidate.Describe()
	if len([]rune(label)) > legendMost {
		return shortName(r, c) + ": " + label
	}
	return label
}

// setupText says in a few words what the default is.
func setupText(s analyze.Setup) string {
	if s.Instances == 0 {
		return "settings unknown"
	}
	text := count(s.Instances, "instance")
	switch {
	case s.IntraOpThreads == 0:
		text += " × all cores"
	case s.IntraOpThreads > 0:
		text += " × " + count(s.IntraOpThreads, "thread")
	}
	if s.MaxBatchSize == 0 {
		return text + ", no batching"
	}
	return fmt.Sprintf("%s, batch %d", text, s.MaxBatchSize)
}

// subtitle says what the picture shows.
func subtitle(r analyze.Result) string {
	parts := []string{r.Header.Model, "goal: " + objectiveText(r.Goal.Objective) + within(r.Goal),
		count(len(r.Configs), "configuration")}
	if r.Failed == r.Trials {
		parts = append(parts, "nothing was measured")
	}
	if s := r.Header.Server; s != nil && s.Name != "" {
		parts = append(parts, s.Name+" "+s.Version)
	} else if text := runtimesText(r.Header); text != "" {
		parts = append(parts, "ONNX Runtime "+text)
	}
	return strings.Join(parts, "  ·  ")
}

// runtimesText names the builds that were measured: the version of one, flavour and version of several.
func runtimesText(h journal.Header) string {
	builds := runtimes(h)
	if len(builds) == 1 {
		return builds[0].Version
	}
	names := make([]string, len(builds))
	for i, b := range builds {
		names[i] = b.Name()
	}
	return strings.Join(names, ", ")
}

// narrowest is the least ratio between the ends of a logarithmic axis.
const narrowest = 6

// extent is the range of x over the curves and the limits; never empty, and positive.
func (c chart) extent() [2]float64 {
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

// highest is the largest y of curves and limits; positive.
func (c chart) highest() float64 {
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

// logAxis leaves some room on both sides of an extent, and more around a narrow one, so that there are ticks to read.
func logAxis(title string, extent [2]float64, ticks func(least, most float64) []plot.Tick) axis {
	room := max(1.18, math.Sqrt(narrowest*extent[0]/extent[1]))
	a := axis{title: title, log: true, min: extent[0] / room, max: extent[1] * room}
	a.ticks = ticks(a.min, a.max)
	return a
}
