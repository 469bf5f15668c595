package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"tuner/internal/children"
	"tuner/internal/terminal"
	"tuner/measure"
	"tuner/profile"
	"tuner/search"
)

// progress shows a campaign on stderr: a line per trial, and on a terminal a bar below them. It is a profile.Observer.
type progress struct {
	out     io.Writer // lines
	goal    search.Goal
	bar     *campaignBar            // nil when stderr is no terminal
	columns func() int              // of the terminal; 0 without one, or when it is unknown
	failed  map[measure.Failure]int // the first trial that failed so
}

// newProgress follows a campaign whose earlier runs used past. Close must be called.
func newProgress(err io.Writer, goal search.Goal, budget search.Budget, past time.Duration) *progress {
	p := &progress{out: err, goal: goal, columns: func() int { return 0 }, failed: map[measure.Failure]int{}}
	if f, ok := err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = newCampaignBar(f, goal, budget, past)
		p.out = p.bar.bars
		p.columns = func() int { // it may be made larger or smaller meanwhile
			columns, _, _ := term.GetSize(int(f.Fd()))
			return columns
		}
	}
	return p
}

func (p *progress) Close() {
	if p.bar != nil {
		p.bar.close()
	}
}

// Begun names the configurations being measured.
func (p *progress) Begun(action search.Action) {
	if p.bar != nil {
		p.bar.begin(action)
	}
}

// BlockRefused prints why configurations are not measured in turns.
func (p *progress) BlockRefused(reason string) {
	start := ""
	if p.bar != nil {
		start = lineStart
	}
	fmt.Fprintf(p.out, "%smeasured one after the other, and not in turns: %s\n", start, briefly(reason))
}

// TrialEnded prints the trial's line: number, time, configuration, load, figures, and whether it satisfies the constraints.
func (p *progress) TrialEnded(event search.Event, status profile.Status) {
	start := ""
	if p.bar != nil {
		start = lineStart
	}
	head := fmt.Sprintf("%4d  %6s  ", status.Trials, clockText(status.Elapsed))
	outcome := outcomeText(event, p.goal)
	if f := event.Measurement.Failure; f != nil {
		if first, known := p.failed[*f]; known {
			outcome = fmt.Sprintf("failed (%s) as trial %d", f.Stage, first)
		} else {
			p.failed[*f] = status.Trials
		}
	}
	fmt.Fprintln(p.out, start+trialLine(head, trialText(event.Trial), outcome, p.columns()))
	if p.bar != nil {
		p.bar.end(status)
	}
}

// narrowestText is the least width, in columns, that the text beside a line's head is folded to.
const narrowestText = 30

// trialLine joins the parts of a trial's line. What a terminal of so many columns (0: none) has no room for goes on below, behind the
// head: first the trial, then its outcome.
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

// trialText names what a trial measures: a configuration at a load, or for a service trial an engine process and its batches.
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
	return fmt.Sprintf("service curve of %s · concurrency %d × batch %s", t.Candidate.PoolKey(), t.Load.Concurrency, sizes)
}

// outcomeText is a trial's result in a few words.
func outcomeText(e search.Event, goal search.Goal) string {
	m := e.Measurement
	switch {
	case m.Failure != nil:
		return fmt.Sprintf("failed (%s): %s", m.Failure.Stage, briefly(m.Failure.Reason))
	case e.Trial.Phase == search.PhaseService:
		return curveText(m.Windows)
	}
	parts := []string{figuresText(goal, m)}
	if len(goal.Constraints) > 0 && !goal.Satisfies(m) {
		parts = append(parts, "misses the constraints")
	}
	return strings.Join(parts, " · ")
}

// curveText prints what the model's computing takes with the smallest and with the largest batch.
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

// briefly is the first line of a reason, and the last one too: there an engine's log says what happened.
func briefly(reason string) string {
	first, rest, more := strings.Cut(strings.TrimSpace(reason), "\n")
	if !more {
		return first
	}
	return first + " … " + children.LastWords(rest)
}

// clockText prints a duration as 3m05s: whole seconds.
func clockText(d time.Duration) string { return d.Round(time.Second).String() }

// campaignBar is the two lines below those of the trials: time spent and left, a bar, the best so far; then the current trial.
// They are redrawn by a goroutine of its own, which close waits for.
type campaignBar struct {
	out    io.Writer // the terminal
	bars   *mpb.Progress
	bar    *mpb.Bar
	ticker sync.WaitGroup
	done   chan struct{}

	mu      sync.Mutex
	started time.Time // start of this run, less what earlier runs used
	budget  time.Duration
	goal    search.Goal
	status  profile.Status
	ended   time.Time // when status was true
	current string
}

// lineStart begins each line on a terminal: where a key was pressed meanwhile (^C), the cursor is not in the first column.
const lineStart = "\r"

// barWidth is the width of the bar with its space; the texts around it are shortened to leave it room.
const barWidth = 24

// barSteps is the resolution of the bar.
const barSteps = 1000

func newCampaignBar(out io.Writer, goal search.Goal, budget search.Budget, past time.Duration) *campaignBar {
	b := &campaignBar{
		out:  out,
		bars: mpb.New(mpb.WithOutput(out), mpb.WithWidth(barWidth), mpb.WithRefreshRate(250*time.Millisecond)),
		done: make(chan struct{}), started: time.Now().Add(-past), budget: budget.Time, goal: goal, current: "starting",
	}
	b.bar = b.bars.AddBar(barSteps,
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return b.timeText() })),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string {
			return shorten(b.bestText(), s.AvailableWidth-barWidth)
		})),
		mpb.BarExtender(mpb.BarFillerFunc(func(w io.Writer, s decor.Statistics) error {
			_, err := fmt.Fprintln(w, lineStart+shorten("now "+b.currentText(), s.AvailableWidth))
			return err
		}), false),
		mpb.BarRemoveOnComplete())
	b.ticker.Go(b.tick)
	return b
}

func (b *campaignBar) tick() {
	for ticks := time.NewTicker(250 * time.Millisecond); ; {
		select {
		case <-b.done:
			ticks.Stop()
			return
		case <-ticks.C:
			b.bar.SetCurrent(int64(b.share() * (barSteps - 1)))
		}
	}
}

func (b *campaignBar) close() {
	close(b.done)
	b.ticker.Wait()
	b.bar.Abort(true)
	b.bars.Wait()
	fmt.Fprint(b.out, lineStart)
}

func (b *campaignBar) begin(action search.Action) {
	var texts []string
	for _, t := range action.Trials() {
		texts = append(texts, trialText(t))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current = strings.Join(texts, "; ")
}

func (b *campaignBar) end(status profile.Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status, b.ended = status, time.Now()
}

// left is the expected time until the end; false while nothing is known of it.
func (b *campaignBar) left() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.budget - time.Since(b.started)
	if b.status.Trials == 0 {
		return max(left, 0), b.budget > 0
	}
	remaining := b.status.Remaining - time.Since(b.ended)
	if b.budget > 0 {
		remaining = min(remaining, left)
	}
	return max(remaining, 0), true
}

// share is the part of the campaign's time that is over, 0..1.
func (b *campaignBar) share() float64 {
	left, known := b.left()
	if !known {
		return 0
	}
	elapsed := time.Since(b.started)
	return elapsed.Seconds() / (elapsed + left).Seconds()
}

func (b *campaignBar) timeText() string {
	text := lineStart + clockText(time.Since(b.started))
	if left, known := b.left(); known {
		text += fmt.Sprintf(", about %s left", clockText(left))
	}
	return text + " "
}

func (b *campaignBar) bestText() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bestText(b.goal, b.status)
}

// bestText is the answer so far with the figures that a report would have now.
func bestText(goal search.Goal, status profile.Status) string {
	if answer := status.Answer(); answer != nil {
		return " best so far " + answer.Text(goal)
	}
	return " none within the constraints yet"
}

func (b *campaignBar) currentText() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current
}

// shorten cuts text to a number of columns; every character that is printed here takes one.
func shorten(text string, columns int) string {
	characters := []rune(text)
	if len(characters) <= columns {
		return text
	}
	if columns < 1 {
		return ""
	}
	return string(characters[:columns-1]) + "…"
}
