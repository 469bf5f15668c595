package chart

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"tuner/analyze"
	"tuner/internal/plotstyle"
	"tuner/measure"
	"tuner/report/figures"
)

// stageLooks are the styles of the three curves, like OLive's chart: blue, light green, dark green.
var stageLooks = [...]look{
	{color: color.RGBA{0x1f, 0x77, 0xd0, 0xff}, width: 2, radius: 4.6, sides: 4, turn: math.Pi / 4},
	{color: color.RGBA{0x7c, 0xc6, 0x7c, 0xff}, width: 2, radius: 4.8, sides: 3},
	{color: color.RGBA{0x12, 0x6e, 0x3a, 0xff}, width: 2, radius: 4, sides: 32},
}

// WriteStages draws the three curves over the load as a PNG picture.
func WriteStages(w io.Writer, r analyze.Result) error {
	c := picture{title: "Throughput by stage of tuning", subtitle: subtitle(r), limits: limitsOf(r, measure.Throughput, 1, false)}
	var drawn []curve
	for _, s := range figures.Stages(r) {
		if s.Same != "" {
			c.legend = append(c.legend, entry{label: fmt.Sprintf("%s: the same as %s", s.Title, s.Same), look: stageLooks[s.Tuned]})
			continue
		}
		line := curve{points: dots(r, s.Config, level, figures.QuantityOf(measure.Throughput)), look: stageLooks[s.Tuned]}
		if len(line.points) == 0 {
			continue
		}
		drawn = append(drawn, line)
		c.legend = append(c.legend, entry{label: s.Title, look: line.look}, entry{label: figures.ConfigText(s.Config), mark: markNone})
	}
	c.legend = append(c.legend, keys(r, drawn, 0)...)
	c.curves = drawn
	most := c.highest() * 1.12 // leaves space on top for the limit's label
	c.y = axis{title: "Throughput (infer/sec)", max: most, ticks: plotstyle.LinearTicks(most)}
	title := "Request Concurrency"
	if figures.IsRate(r) {
		title = "Request Rate (requests/sec)"
	}
	c.x = logAxis(title, c.extent(), doublingTicks)
	return c.write(w)
}
