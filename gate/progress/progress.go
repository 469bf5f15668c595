// Package progress shows a running gate: a live view on the terminal (package live) or in a browser
// (package web), or a line for each pair. It observes package gate, and decides nothing.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/internal/live"
	"tuner/internal/live/noise"
	"tuner/internal/words"
	"tuner/measure"
)

// Progress is a gate.Observer that prints.
type Progress struct {
	out      io.Writer
	budget   time.Duration
	metric   measure.Metric   // metric of the chart and of the shown figures
	others   []measure.Metric // shown beside it: the first of each other model
	criteria []gate.Criterion

	view *live.View // nil: lines
}

// New shows a gate that begins. If out is a display, it shows frames there. The caller must call
// Close.
func New(out io.Writer, s gate.Setup) *Progress {
	p := &Progress{out: out, budget: s.Spec.Budget, criteria: gate.Criteria(s.Spec), metric: append(s.Spec.AllMetrics(), measure.Throughput)[0]}
	p.others = firstOf(s, p.metric)
	fmt.Fprintf(out, "gating %s at %s (budget %v), results in %s\n", s.Spec.Name, s.LoadText(), s.Spec.Budget, s.Spec.Output)
	if shown, ok := out.(live.Display); ok {
		frame := p.first(s, time.Now())
		frame.Keys = []live.Key{live.StopKey(shown.Update)}
		p.view = live.NewView(shown, frame)
	}
	return p
}

// firstOf returns the first metric of each of several models, without the one that is shown already.
func firstOf(s gate.Setup, shown measure.Metric) []measure.Metric {
	var list []measure.Metric
	for _, one := range s.Models {
		metrics := s.Spec.AllMetrics()
		i := slices.IndexFunc(metrics, func(m measure.Metric) bool { model, _ := m.Split(); return model == one.Spec.Name })
		if i >= 0 && metrics[i] != shown {
			list = append(list, metrics[i])
		}
	}
	return list
}

// Close gives the terminal back. It does nothing on nil.
func (p *Progress) Close() {
	if p != nil {
		p.view.Close()
	}
}

// Measured implements gate.Observer.
func (p *Progress) Measured(pair gate.Pair, at gate.Progress) {
	if p.view == nil {
		line := fmt.Sprintf("%6s  %d of at most %d: %s %s", words.Clock(at.Elapsed), at.Pairs, at.Most, p.metric, figures(p.metric, pair))
		for _, m := range p.others {
			line += fmt.Sprintf(", %s %s", m, figures(m, pair))
		}
		fmt.Fprintln(p.out, line)
		return
	}
	p.view.Update(p.change(pair, at))
}

// figures prints the pair's values of a metric.
func figures(m measure.Metric, pair gate.Pair) string {
	var list []string
	for _, side := range []measure.Measurement{pair.Baseline, pair.Candidate} {
		if v, ok := gate.Figure(m, side); ok {
			list = append(list, m.Format(v))
		}
	}
	return strings.Join(list, " → ")
}

// first returns the frame before the first pair.
func (p *Progress) first(s gate.Setup, now time.Time) live.Frame {
	info, _ := p.metric.Info()
	f := live.Frame{
		Title: fmt.Sprintf("gate %s at %s", s.Spec.Name, s.LoadText()), Now: "pair 1, on fresh processes", Began: now, Ends: now.Add(p.budget),
		Chart: live.Chart{
			X:     live.Axis{Name: "pairs", Format: func(x float64) string { return fmt.Sprintf("%.0f", x) }},
			Y:     live.Axis{Name: string(p.metric), Unit: string(info.Unit), Format: p.metric.Format},
			Marks: live.Marks{Kept: "candidate"},
		},
		Heads: live.Heads{Count: "Pair", Text: "Metric", Outcome: "Candidate"},
	}
	if s.Baseline != nil {
		f.Chart.Marks.Missed, f.Heads.Outcome = "baseline", "Baseline → candidate"
	}
	f.Answer, _ = p.answer(nil)
	for _, c := range p.criteria {
		if c.Metric == p.metric && c.IsLimit() && !c.Min {
			f.Chart.Limit = c.Bound
		}
	}
	return f
}

// change returns what a pair changes in the frame.
func (p *Progress) change(pair gate.Pair, at gate.Progress) func(*live.Frame) {
	answer, isGood := p.answer(at.Standings)
	points := slices.Clone(p.view.Frame.Chart.Points)
	for _, side := range []struct {
		of        measure.Measurement
		candidate bool
	}{{pair.Baseline, false}, {pair.Candidate, true}} {
		if v, ok := gate.Figure(p.metric, side.of); ok {
			points = append(points, live.Point{X: float64(at.Pairs), Y: v, Text: fmt.Sprintf("pair %d", at.Pairs), IsKept: side.candidate})
		}
	}
	var entries []live.Entry
	for _, m := range append([]measure.Metric{p.metric}, p.others...) {
		entries = append(entries, live.Entry{Head: fmt.Sprintf("%4d  %6s  ", at.Pairs, words.Clock(at.Elapsed)), Text: string(m), Outcome: figures(m, pair)})
	}
	windows := slices.Concat(pair.Baseline.Windows, pair.Candidate.Windows)
	now := fmt.Sprintf("pair %d of at most %d, on fresh processes", min(at.Pairs+1, at.Most), at.Most)
	// all pairs that are possible, each as long as those so far
	longest := min(p.budget, at.Elapsed/time.Duration(at.Pairs)*time.Duration(at.Most))
	return func(f *live.Frame) {
		f.Answer, f.IsGood, f.Now, f.Ends = answer, isGood, now, f.Began.Add(longest)
		f.Noise = noise.With(f.Noise, windows)
		f.Chart.Points = points
		f.Recent = append(slices.Clone(f.Recent), entries...)
	}
}

// answer describes what is known about each criterion. Verdicts are made at looks alone.
func (p *Progress) answer(standings []decide.Standing) (sentences []string, isGood bool) {
	if len(p.criteria) == 0 {
		return []string{"The candidate is measured, and compared with nothing."}, false
	}
	isGood = len(standings) > 0
	for i, c := range p.criteria {
		text, verdict := "not measured yet", decide.Inconclusive
		if i < len(standings) && standings[i].Pairs > 0 {
			verdict = standings[i].Verdict
			text = fmt.Sprintf("%s after %d pairs: %s", verdictText(verdict), standings[i].Pairs, c.Interval(standings[i]))
		}
		isGood = isGood && verdict == decide.Pass
		sentences = append(sentences, fmt.Sprintf("%s: %s; %s is allowed.", c.Metric, text, c.Tolerated()))
	}
	return sentences, isGood
}

// verdictText names a verdict on a criterion of a gate that runs.
func verdictText(v decide.Verdict) string {
	if v == decide.Inconclusive {
		return "open"
	}
	return string(v)
}
