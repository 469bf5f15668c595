package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"tuner/measure"
	"tuner/measure/stats"
)

// trim is the share of the rounds that the trimmed mean omits at each end (like stats.PairedRatio).
const trim = 0.2

// figures are logarithms of the ratio of two equal engines, round by round.
type figures struct {
	little, count []float64 // by Little's law; by the completed requests
	foreign       float64   // mean share of the CPU time that others used
	windows       time.Duration
}

func newFigures(blocks []block) figures {
	var f figures
	n := 0
	for _, b := range blocks {
		for i := range min(len(b.a.Windows), len(b.b.Windows)) {
			v, w := b.a.Windows[i], b.b.Windows[i]
			x, okX := v.Little()
			y, okY := w.Little()
			if !okX || !okY {
				continue
			}
			f.little = append(f.little, math.Log(x/y))
			f.count = append(f.count, math.Log(rate(v)/rate(w)))
			f.foreign, n = f.foreign+v.Foreign+w.Foreign, n+2
			f.windows += v.Duration + w.Duration
		}
	}
	f.foreign /= float64(max(1, n))
	return f
}

func rate(w measure.Window) float64 { return float64(w.Inferences) / w.Duration.Seconds() }

// String prints the rounds' estimate of the ratio.
func (f figures) String() string {
	return fmt.Sprintf("%d rounds; A/B − 1: %s; trimmed: %s; counted: %s; others use %.0f %% of the CPU time",
		len(f.little), ofMean(stats.TrimmedMean(f.little, 0)), ofMean(stats.TrimmedMean(f.little, trim)), ofMean(stats.TrimmedMean(f.count, 0)), 100*f.foreign)
}

func ofMean(t stats.Trimmed) string { return fmt.Sprintf("%+.2f ± %.2f %%", 100*t.Mean, 100*t.Error) }

// falseFindings returns the number of meetings of consecutive rounds whose 95 % interval excludes
// 0. Meetings are drawn from the logarithms of blocks.
func falseFindings(blocks [][]float64, meetings, rounds int) int {
	random, found := rand.New(rand.NewPCG(1, 2)), 0
	long := slices.DeleteFunc(slices.Clone(blocks), func(b []float64) bool { return len(b) < rounds })
	if len(long) == 0 {
		return 0
	}
	for range meetings {
		b := long[random.IntN(len(long))]
		at := random.IntN(len(b) - rounds + 1)
		t := stats.TrimmedMean(b[at:at+rounds], trim)
		if t.Freedom > 0 && math.Abs(t.Mean) > stats.TQuantile(0.975, float64(t.Freedom))*t.Error {
			found++
		}
	}
	return found
}

// report prints the result of all blocks.
func report(o options, blocks []block, took time.Duration) string {
	var text strings.Builder
	all := newFigures(blocks)
	fmt.Fprintf(&text, "%s at concurrency %d, %d blocks of two engines alike in %v: %s\n", o.model, o.concurrency, len(blocks), took.Round(time.Second), all)
	fmt.Fprintf(&text, "a window's logarithm scatters by %.1f %% around those of its engine, neighbours' difference by %.1f %%\n", 100*scatter(blocks), 100*deviation(all.little))
	var logs [][]float64
	for _, b := range blocks {
		logs = append(logs, newFigures([]block{b}).little)
	}
	found := falseFindings(logs, o.meetings, o.meeting)
	fmt.Fprintf(&text, "of %d meetings of %d rounds %d (%.1f %%) find a difference\n", o.meetings, o.meeting, found, 100*float64(found)/float64(o.meetings))
	fmt.Fprintf(&text, "windows are %.0f %% of the time\n", 100*all.windows.Seconds()/took.Seconds())
	return text.String()
}

// scatter returns the standard deviation of the logarithms of windows' throughputs around the mean
// of their launch.
func scatter(blocks []block) float64 {
	squares, freedom := 0.0, 0
	for _, b := range blocks {
		for _, m := range []measure.Measurement{b.a, b.b} {
			var logs []float64
			for _, w := range m.Windows {
				if x, ok := w.Little(); ok {
					logs = append(logs, math.Log(x))
				}
			}
			squares, freedom = squares+float64(len(logs)-1)*math.Pow(deviation(logs), 2), freedom+len(logs)-1
		}
	}
	return math.Sqrt(squares / float64(max(1, freedom)))
}

// deviation returns the standard deviation of values.
func deviation(values []float64) float64 {
	return stats.TrimmedMean(values, 0).Error * math.Sqrt(float64(len(values)))
}
