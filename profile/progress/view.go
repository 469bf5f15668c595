package progress

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tuner/internal/live"
	"tuner/internal/live/noise"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/profile"
	"tuner/search"
	"tuner/search/verdict"
)

// view shows a campaign on a display, from the same events as the lines.
type view struct {
	*live.View
	shown live.Display // for the keys
	goal  search.Goal
	// isRemote reports whether a phase is measured on a remote server
	isRemote func(search.Phase) bool

	mu        sync.Mutex
	budget    time.Duration // 0: none
	added     time.Duration // by the user since the campaign asked for it
	hasAnswer bool          // there is something to confirm
	isHurried bool          // the user wants it confirmed
}

// newView shows the first frame. It returns nil, and prints why, if the display cannot show it.
func newView(shown live.Display, name string, goal search.Goal, budget search.Budget, past time.Duration, isRemote func(search.Phase) bool) *view {
	v := &view{shown: shown, goal: goal, isRemote: isRemote, budget: budget.Time}
	latency := goal.Latency()
	frame := live.Frame{
		Title: name + verdict.Words{Goal: goal}.Within(), Answer: []string{"No configuration was measured yet."}, Now: "starting",
		Began: time.Now().Add(-past), Keys: []live.Key{live.StopKey(shown.Update), {Rune: 'c', Text: "confirm now", Do: v.confirm}},
		Chart: live.Chart{X: axis(measure.Throughput), Y: axis(latency), Limit: limitOf(goal, latency), IsTradeoff: true,
			Marks: live.Marks{Kept: "keeps the limits", Missed: "misses a limit", Best: "the answer so far"}},
		Heads: live.Heads{Count: "Trial", Text: "Configuration and load", Outcome: "Outcome"},
	}
	if budget.Time > 0 {
		frame.Ends = frame.Began.Add(budget.Time)
		frame.Keys = append(frame.Keys, live.Key{Rune: '+', Text: "two minutes more", Do: v.more})
	}
	if v.View = live.NewView(shown, frame); v.View == nil {
		return nil
	}
	return v
}

func axis(m measure.Metric) live.Axis {
	info, _ := m.Info()
	return live.Axis{Name: verdict.Label(m), Unit: string(info.Unit), Format: m.Format}
}

// limitOf returns the goal's upper limit of a metric, or 0.
func limitOf(goal search.Goal, metric measure.Metric) float64 {
	for _, c := range goal.Constraints {
		if c.Metric == metric && c.Max != nil {
			return *c.Max
		}
	}
	return 0
}

func (v *view) begin(action search.Action) {
	var texts []string
	for _, t := range action.Trials() {
		texts = append(texts, trialText(t))
	}
	now := phaseText(action.Trials()[0].Phase) + strings.Join(texts, "; ")
	v.Update(func(f *live.Frame) { f.Now = now })
}

// phaseText names the part of the campaign before a trial.
func phaseText(p search.Phase) string {
	switch p {
	case search.PhaseFinal:
		return "confirming on a fresh process: "
	case search.PhaseLoadCurve:
		return "load curve: "
	case search.PhaseSearch, search.PhaseDefault:
		return "searching: "
	}
	return ""
}

// end shows a trial's outcome, and the decision with it.
func (v *view) end(event search.Event, status profile.Status) {
	m := event.Measurement
	answer, isGood := v.answer(status)
	v.mu.Lock()
	ends := time.Now().Add(status.Remaining + v.added) // the campaign does not know of added yet
	v.hasAnswer = status.Answer() != nil
	v.mu.Unlock()
	entry := live.Entry{
		Head: fmt.Sprintf("%4d  %6s  ", status.Trials, words.Clock(status.Elapsed)), Text: trialText(event.Trial),
		Outcome: outcomeText(event, search.Goal{Objective: v.goal.Objective, Price: v.goal.Price}), IsBad: m.Failure != nil,
	}
	isPoint := m.Failure == nil && event.Trial.Phase != search.PhaseService
	if isPoint && !v.goal.Satisfies(m) {
		entry.Outcome, entry.IsBad = "× "+entry.Outcome, true
	}
	points := v.Frame.Chart.Points
	if point, ok := v.point(func(metric measure.Metric) (float64, bool) { return v.goal.Value(m, metric) }); ok && isPoint {
		point.Text, point.IsKept = entry.Text, !entry.IsBad
		points = append(withoutBest(points), point)
	}
	points = append(withoutBest(points), v.best(status)...)
	v.Update(func(f *live.Frame) {
		f.Answer, f.IsGood, f.Ends = answer, isGood, ends
		f.Noise = noise.With(f.Noise, m.Windows)
		if len(m.Windows) > 0 {
			f.Noise.IsRemote = v.isRemote(event.Trial.Phase)
		}
		f.Recent = last(append(slices.Clone(f.Recent), entry), mostRecent)
		f.Chart.Points = last(points, mostPoints)
	})
}

// Limits of what a view keeps.
const (
	mostRecent = 60  // measurements in the list, more than a screen has rows
	mostPoints = 400 // of the chart: more lie on each other
)

func last[T any](list []T, most int) []T { return list[max(0, len(list)-most):] }

func withoutBest(points []live.Point) []live.Point {
	return slices.DeleteFunc(slices.Clone(points), func(p live.Point) bool { return p.IsBest })
}

// point returns the place of figures in the chart.
func (v *view) point(value func(measure.Metric) (float64, bool)) (live.Point, bool) {
	x, isX := value(measure.Throughput)
	y, isY := value(v.goal.Latency())
	return live.Point{X: x, Y: y}, isX && isY
}

// best returns the point of the choice that would be deployed now, with the figures of a report.
func (v *view) best(status profile.Status) []live.Point {
	answer := status.Answer()
	if answer == nil {
		return nil
	}
	p, ok := v.point(func(m measure.Metric) (float64, bool) { e, ok := answer.Values[m]; return e.Value, ok })
	if !ok {
		return nil
	}
	p.Text = fmt.Sprintf("%s · %s", answer.Candidate.Describe(), answer.Load)
	p.IsKept, p.IsBest = true, true
	return []live.Point{p}
}

// answer describes the decision so far in the words of the reports. An unfinished one needs no
// headline: the campaign continues.
func (v *view) answer(status profile.Status) (sentences []string, isGood bool) {
	decision, w := status.Verdict, verdict.Words{Goal: v.goal}
	lines := decision.Lines(w)
	switch {
	case len(lines) == 0 || decision.Answer() == nil:
		return []string{"No configuration was measured yet."}, false
	case status.Answer() == nil:
		return []string{"Nothing satisfies the limits yet.", lines[0].String()}, false
	}
	sentences = []string{"Best so far: " + lines[0].Text}
	if decision.State != verdict.Unfinished {
		sentences = append(sentences, decision.Headline(w))
	}
	return sentences, decision.Recommended != nil
}

// oneMore is the time that a key adds to the budget.
const oneMore = 2 * time.Minute

// more adds time to the budget.
func (v *view) more() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.added += oneMore
	v.budget += oneMore
	note := fmt.Sprintf("The budget of this run is now %s.", words.Clock(v.budget))
	v.shown.Update(func(f *live.Frame) { f.Note, f.Ends = note, f.Ends.Add(oneMore) })
}

// takeMore returns the time that the user added since the last call.
func (v *view) takeMore() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	added := v.added
	v.added = 0
	return added
}

// confirm ends the search, so that the campaign only confirms the answer.
func (v *view) confirm() {
	v.mu.Lock()
	defer v.mu.Unlock()
	note := "There is no answer to confirm yet."
	if v.hasAnswer {
		note, v.isHurried = "The search is over. The answer is confirmed next.", true
	}
	v.shown.Update(func(f *live.Frame) { f.Note = note })
}

func (v *view) isEnough() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.isHurried
}
