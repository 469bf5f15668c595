package driver

import (
	"context"
	"fmt"
	"time"

	"tuner/fleet/cluster"
	"tuner/fleet/objects"
	"tuner/internal/words"
)

// watch keeps all that one Run has seen so far.
type watch struct {
	Driver
	states    []cluster.Status
	said      []string             // what was said last of each state
	waited    []string             // the cluster's last words about each campaign that waited
	ending    map[string]time.Time // when a pod that ends was first seen, by its name
	told      map[string]bool      // hanging pods that were spoken of
	collected int                  // results on the disk; -1: nothing was written yet
	spoken    time.Time            // of the last summary
	trouble   string               // the last error of a question, "" if it was answered
	judged    time.Time            // when hopeless types were last looked for
	damage    error                // records that cannot be used
}

func newWatch(d Driver) *watch {
	n := 0
	for _, p := range d.Plan.Parts {
		n += len(p.Items)
	}
	return &watch{Driver: d, said: make([]string, n), waited: make([]string, n), ending: map[string]time.Time{}, told: map[string]bool{}, collected: -1, spoken: time.Now()}
}

// round asks once, says what has changed, and does what is to be done.
func (w *watch) round(ctx context.Context) error {
	have, delivered, err := w.ask(ctx)
	if err != nil {
		return err
	}
	w.states = cluster.StatusOf(w.Plan, have, delivered, time.Now())
	w.notice(have.Pods)
	for i := range w.states {
		w.report(i)
	}
	w.free(ctx)
	if len(delivered) != w.collected {
		_, damage, err := w.collect(ctx)
		if err != nil {
			return err
		}
		w.collected, w.damage = len(delivered), damage
	}
	if err := w.endHopeless(ctx); err != nil {
		return err
	}
	if time.Since(w.spoken) >= summaryEvery && !w.isOver() {
		w.spoken = time.Now()
		w.sayf("%d of %s are over", len(w.states)-w.open(), words.Count(len(w.states), "campaign"))
	}
	return nil
}

// summaryEvery is the time between two lines that say how far the fleet is.
const summaryEvery = time.Minute

// report says what has changed about a campaign.
func (w *watch) report(i int) {
	s := &w.states[i]
	if s.State == cluster.StateWaiting && s.Reason != "" {
		w.waited[i] = s.Reason
	}
	// When a job's time is over, its pods go, and with them the scheduler's words.
	if s.State == cluster.StateGivenUp && s.Attempts == 0 && w.waited[i] != "" {
		s.Reason += "; it waited: " + w.waited[i]
	}
	text := s.State
	if s.Node != "" {
		text += " on " + s.Node
	}
	if s.Attempts > 1 {
		text += fmt.Sprintf(", attempt %d", s.Attempts)
	}
	if s.Reason != "" {
		text += ": " + words.Shorten(s.Reason, longestReason)
	}
	if text != w.said[i] {
		w.said[i] = text
		w.sayf("%s: %s", s.Name(), text)
	}
}

// longestReason is the number of characters of the cluster's words in a line.
const longestReason = 300

// open returns the number of campaigns of which something may still come.
func (w *watch) open() int {
	n := 0
	for _, s := range w.states {
		if !s.IsOver() {
			n++
		}
	}
	return n
}

func (w *watch) isOver() bool { return len(w.states) > 0 && w.open() == 0 }

// complain says once that the cluster does not answer. The pods measure on without this program.
func (w *watch) complain(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == w.trouble || ctx.Err() != nil {
		return
	}
	if w.trouble = text; err != nil {
		w.sayf("%v; asking again every %s, and the pods measure on", err, every)
	} else {
		w.sayf("the cluster answers again")
	}
}

// notice keeps since when each pod is ending, by the clock of this machine. The times in a pod are those
// of another clock.
func (w *watch) notice(pods []cluster.Pod) {
	for _, p := range pods {
		if _, seen := w.ending[p.Metadata.Name]; !seen && p.Metadata.DeletionTimestamp != nil {
			w.ending[p.Metadata.Name] = time.Now()
		}
	}
}

// free lets campaigns be replaced whose node does not answer. A pod that was asked to end has its grace
// for that; only after that and another minute it counts as lost.
func (w *watch) free(ctx context.Context) {
	for _, s := range w.states {
		since, seen := w.ending[s.Pod]
		if s.State != cluster.StateHangs || !seen || time.Since(since) < objects.Grace+cluster.HangAfter {
			continue
		}
		node := w.Rescue.NodeState(ctx, s.Node)
		if node == cluster.NodeSilent || node == cluster.NodeUnknown && w.Blind {
			err := w.Rescue.Rescue(ctx, s.Pod)
			if err != nil {
				err = fmt.Errorf("%w; %s", err, s.Reason)
				w.tell(s.Pod, err.Error())
				continue
			}
			w.sayf("%s: node %s does not answer; pod %s counts as over, and the campaign begins again elsewhere", s.Name(), s.Node, s.Pod)
			continue
		}
		if node == cluster.NodeUnknown {
			w.tell(s.Pod, fmt.Sprintf("%s: you may not read node %s, so its pod %s is not said to be over; --rescue-unseen does that: %s", s.Name(), s.Node, s.Pod, s.Reason))
		}
	}
}

// tell says something about a pod once.
func (w *watch) tell(pod, text string) {
	if !w.told[pod] {
		w.told[pod] = true
		w.Say(text)
	}
}
