package cluster

import (
	"sync"
	"testing"
	"time"

	"tuner/fleet/record"
	"tuner/fleet/results"
	"tuner/lab/landscape"
	"tuner/measure"
	"tuner/search"
	"tuner/search/plan"
	"tuner/search/verdict"
)

// watched is a campaign whose worker sends what it has again and again.
type watched struct {
	*plan.Plan
	price   float64       // of a time in which one inference per second makes one
	phase   time.Duration // of its segments: workers do not begin at one instant
	elapsed time.Duration
	sent    []results.Standing // with each segment
}

// segmentEvery is the time between two segments of a worker, and between two looks of `fleet run`.
const segmentEvery = 30 * time.Second

// segment returns the time of a segment, from 0.
func (w *watched) segment(ordinal int) time.Duration {
	return w.phase + time.Duration(ordinal)*segmentEvery
}

func (w *watched) Tell(e search.Event) {
	for w.segment(len(w.sent)) < e.Elapsed { // it has the trials before this one
		w.sent = append(w.sent, w.standing())
	}
	w.elapsed = e.Elapsed
	w.Plan.Tell(e)
}

// standing is the one that package results makes from a journal.
func (w *watched) standing() results.Standing {
	x := results.Standing{Model: "m", Part: &record.Part{}, Elapsed: w.elapsed}
	if w.elapsed > 0 {
		x.Outlook = results.OutlookOf(w.Verdict(), func(throughput float64) float64 { return w.price / throughput })
	}
	return x
}

// at returns what has been delivered at a time; nothing before the first segment.
func (w *watched) at(t time.Duration) results.Standing {
	for i := len(w.sent) - 1; i >= 0; i-- {
		if w.segment(i) <= t {
			return w.sent[i]
		}
	}
	return results.Standing{Model: "m", Part: &record.Part{}}
}

// after returns the time of the first segment after a time.
func (w *watched) after(t time.Duration) time.Duration {
	n := 0
	for w.segment(n) <= t {
		n++
	}
	return w.segment(n)
}

// F14 of docs/design/fleet.md, on simulated campaigns: what a campaign says after its first part does not end
// a type that would have become the cheapest. The other type costs exactly what this one can reach, and is
// known exactly, which is the hardest case in which this one must stay.
func TestTheBestTypeIsNotEnded(t *testing.T) {
	t.Parallel()
	const seeds = 3
	var mutex sync.Mutex
	campaigns, ended, open := 0, 0, 0
	t.Cleanup(func() { // after the landscapes
		t.Logf("%d campaigns, %d ended, %d open", campaigns, ended, open)
		// The contract allows 0.5 %. With 40 seeds, one of 600 campaigns is ended: a neighbour was busy during most of it.
		if campaigns < 40 || ended > 0 || open > campaigns/2 {
			t.Errorf("%d of %d campaigns of the best type are ended, and %d have found nothing", ended, campaigns, open)
		}
	})
	for _, l := range landscape.Synthetic() {
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			for _, limit := range l.Limits() {
				best, ok := l.Best(limit)
				if !ok {
					continue
				}
				for seed := range uint64(seeds) {
					isOpen, why := judge(t, l, limit, best.Throughput, seed)
					mutex.Lock()
					if campaigns++; isOpen {
						open++
					}
					if why != "" {
						ended++
						t.Logf("%s, seed %d: %s", limit.Name, seed, why)
					}
					mutex.Unlock()
				}
			}
		})
	}
}

// stopped is a campaign that is looked at after its first part.
type stopped struct {
	*plan.Plan
	first, elapsed time.Duration
	then           verdict.Verdict
}

func (s *stopped) Tell(e search.Event) {
	s.elapsed = e.Elapsed
	s.Plan.Tell(e)
}

func (s *stopped) Ask() search.Action {
	if s.elapsed < s.first {
		return s.Plan.Ask()
	}
	s.then = s.Verdict()
	return search.Action{Stop: true}
}

// judge looks at a campaign after its first part. It returns whether the campaign has found nothing that
// keeps the limit, and why the type is ended beside another that has the best throughput; "" if it stays.
func judge(t *testing.T, l *landscape.Landscape, limit landscape.Limit, best float64, seed uint64) (isOpen bool, why string) {
	t.Helper()
	const budget, first = 4 * time.Minute, 80 * time.Second
	p, err := plan.New("guided", l.Settings(limit, budget, seed))
	if err != nil {
		t.Fatal(err)
	}
	s := &stopped{Plan: p, first: first}
	l.Run(s, limit, seed, nil)
	x := results.Standing{Model: "m", Machine: "this", Part: &record.Part{}, Elapsed: first,
		Outlook: results.OutlookOf(s.then, func(throughput float64) float64 { return 1 / throughput })}
	if _, why := results.Hopeless([]results.Standing{x, known(best)}, first); len(why) > 0 {
		return false, why[0]
	}
	list, _ := results.Hopeless([]results.Standing{x, known(1000 * best)}, first) // something always costs more than that
	return len(list) == 0, ""
}

// known is a type that has exactly this throughput at the price of 1.
func known(throughput float64) results.Standing {
	c := verdict.Choice{Holds: 1, Values: map[measure.Metric]measure.Estimate{measure.Throughput: {Value: throughput, Lo: throughput, Hi: throughput}}}
	v := verdict.Verdict{Confidence: verdict.Confidence, Recommended: &c, Configs: []verdict.Choice{c}}
	return results.Standing{Model: "m", Machine: "other", Outlook: results.OutlookOf(v, func(throughput float64) float64 { return 1 / throughput })}
}
