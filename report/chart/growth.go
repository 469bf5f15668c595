package chart

import (
	"io"
	"slices"

	"gonum.org/v1/plot/vg"

	"tuner/analyze"
	"tuner/internal/plotstyle"
	"tuner/measure"
	"tuner/report/figures"
	"tuner/search"
	"tuner/search/verdict"
)

// scaleTitle is the title of an axis of scales.
const scaleTitle = "Scale of the traffic (×)"

// mostUsed is the highest share of a limit on a chart, in per cent. Overloaded servers use thousands.
const mostUsed = 200

// WriteGrowth draws, for each of several models, how much of the limit on its latency it uses over the scale
// of the traffic, as PNG. The best configuration (or the nearest) has whole lines, and the default dashed
// ones.
func WriteGrowth(w io.Writer, r analyze.Result) error {
	title := "How far the traffic can grow"
	if figure, _, ok := figures.Growth(r); ok {
		title += ": " + figure
	}
	c := picture{title: title, subtitle: subtitle(r), limits: []limit{{label: "limit", value: 100}}}
	shown := []analyze.Config{figures.First(r)}
	if base := r.Default(); len(r.Configs) > 0 && !shown[0].Candidate.IsDefault() {
		shown = append(shown, base)
	}
	var drawn []curve
	for i, l := range latencyLimits(r.Goal) {
		for _, config := range shown {
			line := curve{points: usedDots(r, config, l), look: outstanding[i%len(outstanding)]}
			if len(line.points) == 0 {
				continue
			}
			name := figures.ShortName(r, config)
			if config.Candidate.IsDefault() {
				line.look.dashes = []vg.Length{6, 3}
			}
			drawn = append(drawn, line)
			c.legend = append(c.legend, entry{label: verdict.ConstraintText(l) + ", " + name, look: line.look})
		}
	}
	c.legend = append(c.legend, keys(r, drawn, 0)...)
	c.legend = slices.CompactFunc(c.legend, func(a, b entry) bool { return a.mark == markRing && b.mark == markRing })
	c.curves = drawn
	most := min(mostUsed, c.highest()*1.12)
	c.y = axis{title: "Part of the limit that is used (%)", max: most, ticks: plotstyle.LinearTicks(most)}
	c.x = logAxis(scaleTitle+", log scale", c.extent(), doublingTicks)
	return c.write(w)
}

// latencyLimits lists the limits on the latencies of several models.
func latencyLimits(goal search.Goal) []search.Constraint {
	var list []search.Constraint
	for _, c := range goal.Constraints {
		model, of := c.Metric.Split()
		if info, _ := of.Info(); model != "" && info.Unit == measure.Seconds && c.Max != nil {
			list = append(list, c)
		}
	}
	return list
}

// usedDots returns the points of a configuration: scale, and the share of a limit in per cent. It leaves
// out those beyond mostUsed.
func usedDots(r analyze.Result, config analyze.Config, l search.Constraint) []dot {
	q := figures.Quantity{Metric: l.Metric, Factor: 100 / *l.Max}
	list := dots(r, config, level, q)
	kept := list[:0]
	for _, d := range list {
		if d.y <= mostUsed {
			kept = append(kept, d)
		}
	}
	return kept
}
