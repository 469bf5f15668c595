package main

import (
	"fmt"
	"time"

	"tuner/measure"
	"tuner/measure/stats"
)

// turn is a window with what this process used in it.
type turn struct {
	window  measure.Window
	cpu     time.Duration
	isDrawn bool
}

// report prints the figures of turns with the view over those without it.
func report(o options, turns []turn) string {
	throughput := ratio(turns, func(w measure.Window) (float64, bool) {
		return float64(w.Inferences) / w.Duration.Seconds(), w.Inferences > 0
	})
	p99 := ratio(turns, func(w measure.Window) (float64, bool) {
		e, ok := measure.Measurement{Windows: []measure.Window{w}}.Estimate(measure.LatencyP99)
		return e.Value, ok
	})
	var extra []float64
	for i := 0; i+1 < len(turns); i += 2 {
		with, without := inOrder(turns[i], turns[i+1])
		extra = append(extra, with.share()-without.share())
	}
	cpu := stats.Mean(extra)
	return fmt.Sprintf("%d pairs of turns of %v at concurrency %d, with the view drawn over held still:\n"+
		"throughput %s\np99 %s\nCPU time of the process %+.2f %% of a core [%+.2f, %+.2f]\n",
		len(turns)/2, o.turn, o.concurrency, throughput, p99, 100*cpu.Value, 100*cpu.Lo, 100*cpu.Hi)
}

// inOrder returns the turn with the view first.
func inOrder(a, b turn) (with, without turn) {
	if a.isDrawn {
		return a, b
	}
	return b, a
}

// share is the share of a core that this process used.
func (t turn) share() float64 { return t.cpu.Seconds() / t.window.Duration.Seconds() }

// ratio describes the ratio of a figure of the turns with the view to those without it.
func ratio(turns []turn, figure func(measure.Window) (float64, bool)) string {
	var with, without []float64
	for i := 0; i+1 < len(turns); i += 2 {
		a, b := inOrder(turns[i], turns[i+1])
		x, okX := figure(a.window)
		y, okY := figure(b.window)
		if okX && okY {
			with, without = append(with, x), append(without, y)
		}
	}
	e := stats.PairedRatio(with, without)
	return fmt.Sprintf("ratio %.4f [%.4f, %.4f] in %d pairs", e.Value, e.Lo, e.Hi, len(with))
}
