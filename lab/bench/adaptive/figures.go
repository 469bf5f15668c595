package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"tuner/lab/bench/sidebyside"
)

// pair is the same day on both sides.
type pair struct {
	length           time.Duration
	slots            int
	static, adaptive side
}

const quantile = 0.99

// quantileOf returns the quantile of ascending latencies in s, by the nearest rank.
func quantileOf(sorted []time.Duration) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(quantile*float64(len(sorted))))-1)].Seconds()
}

// p99 returns the 99th percentile of all answers in s.
func (x side) p99() float64 { return quantileOf(x.sorted(0, math.MaxInt64)) }

// slot is a part of the day.
type slot struct {
	requests         int
	static, adaptive float64 // 99th percentiles, s
}

// parts returns the slots of a day in which both sides have answers.
func (p pair) parts() (list []slot) {
	for i := range p.slots {
		from, to := p.length*time.Duration(i)/time.Duration(p.slots), p.length*time.Duration(i+1)/time.Duration(p.slots)
		a, b := p.static.sorted(from, to), p.adaptive.sorted(from, to)
		if len(a) > 0 && len(b) > 0 {
			list = append(list, slot{requests: len(a), static: quantileOf(a), adaptive: quantileOf(b)})
		}
	}
	return list
}

// gain returns the geometric mean of the ratios of the slots' percentiles over all requests: the figure
// that a table predicts as its gain.
func (p pair) gain() float64 {
	logs, weight := 0.0, 0.0
	for _, s := range p.parts() {
		logs += float64(s.requests) * math.Log(s.static/s.adaptive)
		weight += float64(s.requests)
	}
	return math.Exp(logs / weight)
}

// write prints the pairs, and the slots of the first one.
func write(out io.Writer, pairs []pair) error {
	text := "| round | requests | lost | changes | static p99 ms | adaptive p99 ms | ratio of all | gain over the slots |\n|---|---|---|---|---|---|---|---|\n"
	for i, p := range pairs {
		a, b := p.static.p99(), p.adaptive.p99()
		text += fmt.Sprintf("| %d | %d | %d | %d | %.1f | %.1f | %.2f | %.2f |\n", i+1, len(p.static.answers), p.static.lost+p.adaptive.lost, p.adaptive.changes, 1e3*a, 1e3*b, a/b, p.gain())
	}
	text += "\n| slot | requests/s | static p99 ms | adaptive p99 ms |\n|---|---|---|---|\n"
	first := pairs[0]
	for i, s := range first.parts() {
		text += fmt.Sprintf("| %d | %.0f | %.1f | %.1f |\n", i+1, float64(s.requests)/(first.length.Seconds()/float64(first.slots)), 1e3*s.static, 1e3*s.adaptive)
	}
	return sidebyside.Print(out, text)
}
