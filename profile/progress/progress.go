// Package progress shows a running campaign: a live view on the terminal (package live) or in a
// browser (package web), or else a line per trial and, on a terminal, a bar with the best
// configuration so far. It observes package profile, and decides nothing.
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"tuner/internal/live"
	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/profile"
	"tuner/search"
)

// Progress is a profile.Observer that prints.
type Progress struct {
	out     io.Writer // for lines
	goal    search.Goal
	view    *view                   // nil without a display
	bar     *campaignBar            // nil if stderr is not a terminal
	columns func() int              // width of the terminal; 0 without a terminal, or if it is unknown
	failed  map[measure.Failure]int // number of the first trial that failed of this cause
}

// New shows the campaign of a model whose earlier runs took the time past. If err is a display, it
// shows frames there. isRemote reports whether a phase is measured on a remote server. The caller must call Close.
func New(err io.Writer, name string, goal search.Goal, budget search.Budget, past time.Duration, isRemote func(search.Phase) bool) *Progress {
	p := &Progress{out: err, goal: goal, columns: func() int { return 0 }, failed: map[measure.Failure]int{}}
	if shown, ok := err.(live.Display); ok {
		p.view = newView(shown, name, goal, budget, past, isRemote)
	}
	if f, ok := terminal.File(err); ok {
		p.bar = newCampaignBar(f, goal, budget, past)
		p.out = p.bar.bars
		p.columns = func() int { // its size may change
			columns, _, _ := term.GetSize(int(f.Fd()))
			return columns
		}
	}
	return p
}

// Close says that the campaign has ended, and gives the terminal back.
func (p *Progress) Close() {
	if p.view != nil {
		p.view.Close()
	}
	if p.bar != nil {
		p.bar.close()
	}
}

// More returns the time that the person who watches added to the budget since the last call.
func (p *Progress) More() time.Duration {
	if p.view == nil {
		return 0
	}
	return p.view.takeMore()
}

// IsEnough reports whether the person who watches wants the answer so far confirmed, and no more
// search.
func (p *Progress) IsEnough() bool { return p.view != nil && p.view.isEnough() }

// Begun implements profile.Observer. View and bar name the current configurations.
func (p *Progress) Begun(action search.Action) {
	if p.view != nil {
		p.view.begin(action)
	}
	if p.bar != nil {
		p.bar.begin(action)
	}
}

// BlockRefused implements profile.Observer. It prints why configurations are not measured in turns.
func (p *Progress) BlockRefused(reason string) {
	start := ""
	if p.bar != nil {
		start = lineStart
	}
	fmt.Fprintf(p.out, "%smeasured one after the other, and not in turns: %s\n", start, words.Brief(reason))
}

// TrialEnded implements profile.Observer. It prints a line with number, time, configuration, load
// and figures, and whether the trial satisfies the constraints.
func (p *Progress) TrialEnded(event search.Event, status profile.Status) {
	if p.view != nil {
		p.view.end(event, status)
		return
	}
	start := ""
	if p.bar != nil {
		start = lineStart
	}
	head := fmt.Sprintf("%4d  %6s  ", status.Trials, words.Clock(status.Elapsed))
	outcome := outcomeText(event, p.goal)
	if f := event.Measurement.Failure; f != nil {
		if first, known := p.failed[f.Cause()]; known {
			outcome = fmt.Sprintf("failed (%s) as trial %d", f.Stage, first)
		} else {
			p.failed[f.Cause()] = status.Trials
		}
	}
	fmt.Fprintln(p.out, start+trialLine(head, trialText(event.Trial), outcome, p.columns()))
	if p.bar != nil {
		p.bar.end(status)
	}
}

// narrowestText is the smallest width, in columns, to which the text after a line's head is folded.
const narrowestText = 30

// trialLine joins the parts of a trial's line. A line that is wider than the terminal (columns; 0:
// no terminal) is folded after its head: first the trial, then its outcome.
func trialLine(head, trial, outcome string, columns int) string {
	line := head + trial + "  →  " + outcome
	if columns <= 0 || utf8.RuneCountInString(line) <= columns {
		return line
	}
	indent := utf8.RuneCountInString(head)
	width := max(narrowestText, columns-indent)
	text := terminal.Fill(trial, width) + "\n" + terminal.Fill("→ "+outcome, width)
	return head + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", indent))
}

// trialText names the configuration and the load of a trial. For a service trial it names the
// engine process and its batches.
func trialText(t search.Trial) string {
	if t.Phase != search.PhaseService || len(t.Sizes) == 0 {
		text := fmt.Sprintf("%s · %s", t.Candidate.Describe(), t.Load)
		if t.Block > 0 {
			text += " · in turns"
		}
		return text
	}
	sizes := fmt.Sprint(t.Sizes[0])
	if last := t.Sizes[len(t.Sizes)-1]; last != t.Sizes[0] {
		sizes += fmt.Sprintf("…%d", last)
	}
	pool := t.Candidate.PoolKey()
	if t.Model != "" {
		pool = t.Model + " " + t.Candidate.Of(t.Model).PoolKey()
	}
	return fmt.Sprintf("service curve of %s · concurrency %d × batch %s", pool, t.Load.Concurrency, sizes)
}

// outcomeText describes the result of a trial in a few words.
func outcomeText(e search.Event, goal search.Goal) string {
	m := e.Measurement
	switch {
	case m.Failure != nil:
		return fmt.Sprintf("failed (%s): %s", m.Failure.Stage, words.Brief(m.Failure.Reason))
	case e.Trial.Phase == search.PhaseService:
		return curveText(m.Windows)
	}
	parts := []string{figuresText(goal, m)}
	if len(goal.Constraints) > 0 && !goal.Satisfies(m) {
		parts = append(parts, "misses the constraints")
	}
	return strings.Join(parts, " · ")
}

// curveText prints the compute time of the smallest and the largest batch.
func curveText(windows []measure.Window) string {
	text := func(w measure.Window) string {
		e, ok := measure.Measurement{Windows: []measure.Window{w}}.Estimate(measure.ComputeInfer)
		if !ok {
			return "unknown"
		}
		return measure.ComputeInfer.Format(e.Value)
	}
	if len(windows) < 2 {
		return text(windows[0])
	}
	return text(windows[0]) + " … " + text(windows[len(windows)-1])
}

// figuresText prints throughput and p99, and the goal's other metrics.
func figuresText(goal search.Goal, m measure.Measurement) string {
	if models := m.Models(); len(models) > 0 {
		return modelsText(goal, m, models)
	}
	throughput, _ := m.Estimate(measure.Throughput)
	p99, _ := m.Estimate(measure.LatencyP99)
	text := fmt.Sprintf("%s, p99 %s", measure.Throughput.Format(throughput.Value), measure.LatencyP99.Format(p99.Value))
	for _, metric := range goal.Metrics() {
		if e, ok := goal.Estimate(m, metric); ok && metric != measure.Throughput && metric != measure.LatencyP99 {
			text += fmt.Sprintf(", %s %s", metric, metric.Format(e.Value))
		}
	}
	return text
}

// modelsText prints the throughput of each of several models, and the goal's metrics but the scale,
// which the load has.
func modelsText(goal search.Goal, m measure.Measurement, models []string) string {
	var parts []string
	for _, model := range models {
		if e, ok := m.Estimate(measure.Throughput.Of(model)); ok {
			parts = append(parts, model+" "+measure.Throughput.Format(e.Value))
		}
	}
	for _, metric := range goal.Metrics() {
		if e, ok := goal.Estimate(m, metric); ok && metric != measure.Scale {
			parts = append(parts, fmt.Sprintf("%s %s", metric, metric.Format(e.Value)))
		}
	}
	return strings.Join(parts, ", ")
}
