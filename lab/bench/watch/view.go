package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"tuner/internal/live"
)

// display shows frames, as a screen does.
type display interface {
	Update(change func(*live.Frame))
}

// view is a live view that can be held still. One goroutine uses it.
type view struct {
	shown   display
	release chan struct{} // nil: it is drawn
	held    sync.WaitGroup
}

// hold keeps the view from drawing, since a change of its frame does not end. It does nothing on a view
// that is held.
func (v *view) hold() {
	if v.release != nil {
		return
	}
	holds, release := make(chan struct{}), make(chan struct{})
	v.held.Go(func() {
		v.shown.Update(func(*live.Frame) {
			close(holds)
			<-release
		})
	})
	<-holds
	v.release = release
}

// draw lets the view draw again.
func (v *view) draw() {
	if v.release == nil {
		return
	}
	close(v.release)
	v.held.Wait()
	v.release = nil
}

// kept is the number of measurements of a frame, as in a campaign of some minutes.
const kept = 60

// measured shows one more measurement. In a campaign that happens between windows, and seldom.
func (v *view) measured(number int) {
	v.shown.Update(func(f *live.Frame) {
		f.Recent = append(slices.Clone(f.Recent[1:]), entry(number))
		f.Chart.Points = append(slices.Clone(f.Chart.Points[1:]), point(number))
	})
}

// frame is the frame of a campaign.
func frame(now time.Time) live.Frame {
	f := live.Frame{
		Title: "mlp within p99 ≤ 30 ms", Began: now, Ends: now.Add(10 * time.Minute), IsGood: true,
		Answer: []string{"Best so far: 2 instances × 1 thread, batch 32 at concurrency 74: 45531.7 infer/s [36247.8, 57193.3], p99 6.61 ms [4.57, 9.55]; " +
			"p99 ≤ 30 ms kept: >99 %; 1.89 × the default's throughput [1.42, 2.52]."},
		Now:   "searching: 2 instances × 1 thread, batch 32, delay 100 µs · concurrency 74",
		Noise: live.Noise{IsKnown: true, Steal: 0.002, Others: 0.013, History: []float64{0, 0.1, 0.5, 0.7, 0.02}},
		Chart: live.Chart{
			X:     live.Axis{Name: "throughput", Unit: "infer/s", Format: func(x float64) string { return fmt.Sprintf("%.0f infer/s", x) }},
			Y:     live.Axis{Name: "p99", Unit: "s", Format: func(x float64) string { return fmt.Sprintf("%.0f ms", 1000*x) }},
			Limit: 0.030, IsTradeoff: true,
		},
		Keys: []live.Key{{Rune: 's', Text: "stop and keep", Do: func() {}}},
	}
	for i := range kept {
		f.Recent = append(f.Recent, entry(i))
		f.Chart.Points = append(f.Chart.Points, point(i))
	}
	return f
}

func entry(number int) live.Entry {
	return live.Entry{
		Head: fmt.Sprintf("%4d  %5ds  ", number, number), Text: "2 instances × 2 threads, batch 16 · concurrency 64",
		Outcome: fmt.Sprintf("%.1f infer/s, p99 27.7 ms", 20000+float64(number)),
	}
}

func point(number int) live.Point {
	return live.Point{X: float64(1000 + 300*(number%kept)), Y: 0.005 * float64(1+number%7), IsKept: number%7 < 5}
}
