//go:build cluster

package cluster

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"tuner/fleet/results"
	"tuner/lab/landscape"
	"tuner/search/plan"
)

// The machine time that early ends save with eight types, which are one simulated machine at eight prices: from 1 to 5 ×, as types of
// clouds differ. A campaign has the times of the contract's example, and its worker ends with the segment after the decision.
func TestEarlyEndsSaveMachineTime(t *testing.T) {
	const types, dearest, budget, first = 8, 5, 10 * time.Minute, 2 * time.Minute
	var spent, known, whole time.Duration
	for _, l := range landscape.Synthetic() {
		limit := l.Limits()[0]
		if _, ok := l.Best(limit); !ok {
			continue
		}
		var list []*watched
		for i := range types {
			p, err := plan.New("guided", l.Settings(limit, budget, uint64(i)))
			if err != nil {
				t.Fatal(err)
			}
			w := &watched{Plan: p, price: math.Pow(dearest, float64(i)/(types-1)), phase: segmentEvery * time.Duration(i) / types}
			l.Run(w, limit, uint64(i), nil)
			w.sent = append(w.sent, w.standing()) // its end
			list = append(list, w)
		}
		used, ended := endEarly(list, func(standings []results.Standing) []results.Standing {
			hopeless, _ := results.Hopeless(standings, first)
			return hopeless
		})
		// One that knows from the first look that all types but the cheapest cost 1.26 × as much and more.
		least, _ := endEarly(list, func(standings []results.Standing) []results.Standing {
			return slices.DeleteFunc(slices.Clone(standings[1:]), func(x results.Standing) bool { return x.Part == nil || x.Elapsed < first })
		})
		if ended[0] {
			t.Errorf("%s, %s: the best type is ended", l.Name, limit.Name)
		}
		all := time.Duration(0)
		for _, w := range list {
			all += w.elapsed
		}
		percent := func(part time.Duration) float64 { return 100 * float64(part) / float64(all) }
		t.Logf("%s, %s: %.1f %% of the machine time, %.1f %% if all were known, ended %v", l.Name, limit.Name, percent(used), percent(least), ended)
		spent, known, whole = spent+used, known+least, whole+all
	}
	t.Logf("%.1f %% of the machine time of whole campaigns, %.1f %% if all were known", 100*float64(spent)/float64(whole), 100*float64(known)/float64(whole))
}

// endEarly looks at campaigns that run at once as `fleet run` does, and ends what judge returns. It returns their machine time,
// and which of them are ended.
func endEarly(list []*watched, judge func([]results.Standing) []results.Standing) (used time.Duration, ended []bool) {
	ends := make([]time.Duration, len(list))
	ended = make([]bool, len(list))
	longest := time.Duration(0)
	for i, w := range list {
		ends[i], longest = w.elapsed, max(longest, w.elapsed)
	}
	for now := segmentEvery; now < longest; now += segmentEvery {
		var standings []results.Standing
		for i, w := range list {
			x := w.at(min(now, ends[i]))
			if !ended[i] && ends[i] <= now {
				x = w.sent[len(w.sent)-1]
			}
			if x.Machine = fmt.Sprint(i); ended[i] || ends[i] <= now { // it has a result
				x.Part = nil
			}
			standings = append(standings, x)
		}
		for _, x := range judge(standings) {
			i, _ := strconv.Atoi(x.Machine) // it was made of a number
			ended[i], ends[i] = true, min(ends[i], list[i].after(now))
		}
	}
	for _, e := range ends {
		used += e
	}
	return used, ended
}
