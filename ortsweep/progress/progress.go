// Package progress shows a running sweep: a live view on the terminal (package live) or in a browser
// (package web), or a line for each heat and each failure. It observes package ortsweep, and decides
// nothing.
package progress

import (
	"fmt"
	"io"
	"slices"
	"time"

	"tuner/internal/live"
	"tuner/internal/live/noise"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/ortsweep"
	"tuner/ortsweep/race"
	"tuner/search"
)

// Progress is an ortsweep.Observer that prints.
type Progress struct {
	out     io.Writer
	setup   ortsweep.Setup
	race    *race.Race
	heat    int
	windows int
	judged  time.Duration // when the answer so far was made

	view *live.View // nil: lines
}

// mostCounted limits the counting of a sweep's candidates.
const mostCounted = 2000

// New shows a sweep that begins. If out is a display, it shows frames there. The caller must call
// Close.
func New(out io.Writer, s ortsweep.Setup, r *race.Race) *Progress {
	list, whole := s.Candidates(mostCounted)
	more := ""
	if !whole {
		more = "more than "
	}
	fmt.Fprintf(out, "racing %s%s of %s for %s (budget %v), results in %s\n", more, words.Count(len(list), "setting"), s.Subject.Name,
		s.Sweep.Measure, s.Sweep.Search.Budget.Time, s.Sweep.Output)
	p := &Progress{out: out, setup: s, race: r}
	if shown, ok := out.(live.Display); ok {
		frame := p.first(time.Now())
		frame.Keys = []live.Key{live.StopKey(shown.Update)}
		p.view = live.NewView(shown, frame)
	}
	return p
}

// first returns the frame before the first window.
func (p *Progress) first(now time.Time) live.Frame {
	s := p.setup.Sweep
	seconds := func(x float64) string { return words.Clock(time.Duration(x * float64(time.Second))) }
	return live.Frame{
		Title: fmt.Sprintf("ortsweep %s for %s", p.setup.Subject.Name, s.Measure), Answer: []string{"Nothing was compared yet."}, Now: "starting",
		Began: now, Ends: now.Add(s.Search.Budget.Time),
		Chart: live.Chart{
			X: live.Axis{Name: "time", Unit: string(measure.Seconds), Format: seconds},
			Y: live.Axis{Name: string(s.Measure), Unit: string(p.setup.Unit()), Format: p.setup.ValueText}, Marks: live.Marks{Kept: "a window"},
		},
		Heads: live.Heads{Count: "Window", Text: "Settings", Outcome: "Figure"},
	}
}

// Close gives the terminal back.
func (p *Progress) Close() { p.view.Close() }

// Measured implements ortsweep.Observer.
func (p *Progress) Measured(t race.Trial, f ortsweep.Figure, elapsed time.Duration) {
	p.windows++
	if p.view != nil {
		p.view.Update(p.change(t, f, elapsed))
		return
	}
	if t.Heat != p.heat {
		p.heat = t.Heat
		fmt.Fprintf(p.out, "%6s  after %d windows, heat %d: %s\n", words.Clock(elapsed), p.windows-1, t.Heat, phaseText(t.Phase))
	}
	if f.Failure != "" {
		fmt.Fprintf(p.out, "%6s  %s failed: %s\n", words.Clock(elapsed), describe(t.Candidate), words.Brief(f.Failure))
	}
}

// judgeEvery is the least time between two answers so far: one compares all figures of the race.
const judgeEvery = time.Second

// Limits of what a view keeps.
const (
	mostRecent = 60  // windows in the list, more than a screen has rows
	mostPoints = 400 // of the chart: more lie on each other
)

func last[T any](list []T, most int) []T { return list[max(0, len(list)-most):] }

// change returns what a window changes in the frame.
func (p *Progress) change(t race.Trial, f ortsweep.Figure, elapsed time.Duration) func(*live.Frame) {
	answer, isGood := p.view.Frame.Answer, p.view.Frame.IsGood
	if p.judged == 0 || elapsed-p.judged >= judgeEvery {
		text, isBetter := ortsweep.SoFar(p.race.Result())
		answer, isGood, p.judged = []string{text}, isBetter, elapsed
	}
	entry := live.Entry{Head: fmt.Sprintf("%4d  %6s  ", p.windows, words.Clock(elapsed)), Text: ortsweep.SettingText(t.Candidate)}
	points, noisy := slices.Clone(p.view.Frame.Chart.Points), p.view.Frame.Noise
	if entry.IsBad = f.Failure != ""; entry.IsBad {
		entry.Outcome = "failed: " + words.Brief(f.Failure)
	} else {
		w := f.Window
		w.Flags = f.Flags
		entry.Outcome, noisy = p.setup.ValueText(f.Value), noise.With(noisy, []measure.Window{w})
		points = last(append(points, live.Point{X: elapsed.Seconds(), Y: f.Value, Text: entry.Text, IsKept: true}), mostPoints)
	}
	recent := last(append(slices.Clone(p.view.Frame.Recent), entry), mostRecent)
	now := fmt.Sprintf("heat %d, round %d: %s", t.Heat, t.Round, phaseText(t.Phase))
	return func(f *live.Frame) {
		f.Answer, f.IsGood, f.Now = answer, isGood, now
		f.Noise, f.Chart.Points, f.Recent = noisy, points, recent
	}
}

func phaseText(p race.Phase) string {
	switch p {
	case race.PhaseScreen:
		return "screening settings around the best so far"
	case race.PhaseProduct:
		return "racing combinations"
	}
	return "finals on fresh launches"
}

func describe(c search.Candidate) string {
	if c.IsDefault() {
		return "the default"
	}
	return c.Key()
}
