package capacity

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tuner/capacity/autoscaler"
	"tuner/capacity/replica"
	"tuner/capacity/traffic"
	"tuner/internal/parallel"
)

// stabilizations are the tried times of scaling down: from one window of the metric to Kubernetes'
// default.
func stabilizations() []time.Duration {
	return []time.Duration{time.Minute, 2 * time.Minute, autoscaler.DefaultScaleDown}
}

// tolerances are the tried relative distances from the target within which nothing changes: Kubernetes'
// default, and for a HorizontalPodAutoscaler less. The rate of answered requests ends at the capacity, so
// with a tolerance of 10 % a target above 90 % of it is never missed.
func (q *Question) tolerances() []float64 {
	if q.Scaler != HPA || q.DefaultTolerance {
		return []float64{autoscaler.DefaultTolerance}
	}
	return []float64{smallTolerance, autoscaler.DefaultTolerance}
}

// smallTolerance is about three standard deviations of the mean rate of a minute at 100 requests/s.
const smallTolerance = 0.03

// leastShares are quantiles of the number of replicas that a clairvoyant needs: the tried least numbers.
func leastShares() []float64 { return []float64{0, 0.1, 0.25} }

const (
	// The targets are shares of the rate that a replica answers within the limit, in these steps. Above
	// 1, bursts are served while the mean is past the limit.
	lowestTarget, highestTarget, targetStep = 0.40, 1.10, 0.025
	// finestStep is the step of the chosen target.
	finestStep = targetStep / 8
	// spare is the factor of the largest number of replicas over the peak of the traffic: the next weeks
	// may bring more.
	spare = 1.25
	// mostInTable is the largest number of replicas whose balancer is simulated. More behave alike.
	mostInTable = 16
	// usualTarget is the share of the processor time, in percent, that many autoscalers aim at.
	usualTarget = 80
)

// attempt is a setting with its outcome.
type attempt struct {
	site *site
	set  autoscaler.Settings // Min is Max for a fixed number
	o    outcome
	kept bool
}

// searcher looks for the cheapest fleet.
type searcher struct {
	q     *Question
	days  [][]float64
	sites []*site
	hours float64 // of the traffic
}

// newSearcher makes the tables of all replicas.
func newSearcher(q *Question, replicas []replica.Replica) *searcher {
	return searcherWith(q, replicas, func(k int) replica.Table { return q.table(&replicas[k]) })
}

// searcherWith makes a searcher from the table of each replica, by its index.
func searcherWith(q *Question, replicas []replica.Replica, table func(k int) replica.Table) *searcher {
	s := &searcher{q: q, days: q.Traffic.Days(), sites: make([]*site, len(replicas)), hours: q.Traffic.Length().Hours()}
	parallel.For(len(replicas), func(k int) { s.sites[k] = newSite(q, &replicas[k], table(k)) })
	return s
}

// behind returns the number of replicas behind the balancer in a replica's table.
func (q *Question) behind(r *replica.Replica) int {
	return min(max(int(math.Ceil(q.Traffic.Mean()/r.Capacity)), 1), mostInTable)
}

// table simulates a replica among others.
func (q *Question) table(r *replica.Replica) replica.Table {
	around := replica.Surroundings{Replicas: q.behind(r), Balancer: q.Balancer, Dispersion: q.Traffic.Dispersion}
	return r.Table(around, latencyLimits(q.Limit.Seconds()), q.Seed)
}

func newSite(q *Question, r *replica.Replica, t replica.Table) *site {
	x := &site{replica: r, table: t, seconds: t.Limits, startup: int(math.Ceil(float64(q.startup(r)) / float64(traffic.Step)))}
	x.highest, x.safe = x.table.Highest(), x.table.Safe(0, q.Share)
	for i := range t.Limits {
		x.limits = append(x.limits, newShares(&x.table, i))
	}
	return x
}

// needed returns the least number of replicas that keep the limit with the requests of a step: all
// where a replica keeps it at no rate.
func (s *searcher) needed(x *site, requests float64) int {
	if x.safe == 0 {
		return s.q.Max
	}
	return min(max(int(math.Ceil(requests/stepSeconds/x.safe)), s.q.Min), s.q.Max)
}

// clairvoyant returns the outcome of a fleet with the needed number of replicas in each step, and the
// numbers, ascending.
func (s *searcher) clairvoyant(x *site) (attempt, []int) {
	a := attempt{site: x, o: outcome{good: make([]float64, len(x.limits)), worstDay: 1}, kept: true}
	a.set.Min, a.set.Max = s.q.Max, s.q.Min
	var numbers []int
	before := 0
	for _, day := range s.days {
		requests, good := 0.0, 0.0
		for _, n := range day {
			pods := s.needed(x, n)
			f := fleetState{ready: pods}
			got := f.serve(x, n)
			for i := range x.limits {
				a.o.good[i] += n * got.within(x, i)
			}
			good += n * got.within(x, 0)
			requests += n
			a.o.podSteps += float64(pods)
			a.o.peak = max(a.o.peak, pods)
			if before != 0 && pods != before {
				a.o.changes++
			}
			a.set.Min, a.set.Max, before = min(a.set.Min, pods), max(a.set.Max, pods), pods
			numbers = append(numbers, pods)
		}
		a.o.requests += requests
		if requests > 0 {
			a.o.worstDay = min(a.o.worstDay, good/requests)
		}
	}
	slices.Sort(numbers)
	return a, numbers
}

// price returns the price of a replica per hour, 1 if it is unknown: costs are then replica hours.
func (x *site) price() float64 { return cmp.Or(x.replica.Price, 1) }

// cost returns the cost of a day.
func (s *searcher) cost(a *attempt) float64 { return s.hoursPerDay(a) * a.site.price() }

// hoursPerDay returns the replica hours of a day.
func (s *searcher) hoursPerDay(a *attempt) float64 {
	return a.o.podSteps * stepSeconds / 3600 / s.hours * 24
}

// try simulates a setting.
func (s *searcher) try(x *site, set autoscaler.Settings, all bool) attempt {
	return s.watch(x, set, all, nil)
}

// watch is try that shows every step to each, unless that is nil.
func (s *searcher) watch(x *site, set autoscaler.Settings, all bool, each func(Moment)) attempt {
	first := s.first(x, set)
	var scaler *autoscaler.Autoscaler
	if set.Min < set.Max {
		scaler = autoscaler.New(set)
	}
	o := x.run(s.q, s.days, scaler, set.Source, first, all, each)
	return attempt{site: x, set: set, o: o, kept: s.keeps(&o)}
}

// plannedMisses is the part of the allowed misses that a plan uses: days that it has not seen miss more.
const plannedMisses = 0.75

// planned returns the share of all requests that a plan answers within the limit where a share is asked.
func planned(share float64) float64 { return 1 - plannedMisses*(1-share) }

// keeps reports whether enough requests keep the limit: of all days together with room for others, and on the worst
// day too, since the next days may be like it.
func (s *searcher) keeps(o *outcome) bool {
	return o.good[0] >= planned(s.q.Share)*o.requests && o.worstDay >= s.q.Share
}

// first returns the number of replicas with which a simulation begins.
func (s *searcher) first(x *site, set autoscaler.Settings) int {
	n := s.needed(x, s.days[0][0])
	if set.Source != autoscaler.Resource && set.Target > 0 {
		n = int(math.Ceil(s.days[0][0] / stepSeconds * 1000 / float64(set.Target)))
	}
	return min(max(n, set.Min), set.Max)
}

// settings returns an autoscaler's, for a target as a share of the safe rate.
func (s *searcher) settings(x *site, c choice, target float64) autoscaler.Settings {
	b := autoscaler.DefaultBehavior()
	b.Down.Stabilization, b.Up.Tolerance, b.Down.Tolerance = c.down, c.tolerance, c.tolerance
	return autoscaler.Settings{Min: c.least, Max: s.q.Max, Source: s.q.Scaler.source(), Target: max(1, int64(math.Round(target*x.safe*1000))), Behavior: &b}
}

// choice has the settings of an autoscaler besides its target.
type choice struct {
	least     int
	down      time.Duration
	tolerance float64
}

// scaled returns the cheapest setting for each choice: that with the highest target that keeps the
// limit. It also returns the first one above that, which does not.
func (s *searcher) scaled(x *site, numbers []int) (kept, missed []attempt) {
	var choices []choice
	before := 0
	for _, share := range leastShares() {
		n := numbers[int(share*float64(len(numbers)-1))]
		if n == before || n == s.q.Max {
			continue
		}
		for _, down := range stabilizations() {
			for _, tolerance := range s.q.tolerances() {
				choices = append(choices, choice{n, down, tolerance})
			}
		}
		before = n
	}
	found := make([][2]*attempt, len(choices))
	parallel.For(len(choices), func(i int) { found[i][0], found[i][1] = s.highestTarget(x, choices[i]) })
	for _, f := range found {
		if f[0] != nil {
			kept = append(kept, *f[0])
		}
		if f[1] != nil {
			missed = append(missed, *f[1])
		}
	}
	return kept, missed
}

// highestTarget returns the setting with the highest target that keeps the limit, and the next one above
// it, which does not; nil without one.
func (s *searcher) highestTarget(x *site, c choice) (keeps, misses *attempt) {
	low, high := -1, int(math.Round((highestTarget-lowestTarget)/targetStep))+1 // low is kept, high is not
	for high-low > 1 {
		middle := (low + high) / 2
		a := s.try(x, s.settings(x, c, lowestTarget+float64(middle)*targetStep), false)
		if a.kept {
			low, keeps = middle, &a
		} else {
			high, misses = middle, &a
		}
	}
	return keeps, misses
}

// refined returns the setting with the highest target that keeps the limit, between that of a kept one and
// the next step above it.
func (s *searcher) refined(a attempt) attempt {
	if a.set.Min == a.set.Max {
		return a
	}
	target := float64(a.set.Target) / (1000 * a.site.safe)
	for step := targetStep / 2.0; step >= finestStep; step /= 2 {
		set := a.set
		set.Target = int64(math.Round((target + step) * a.site.safe * 1000))
		if b := s.try(a.site, set, false); b.kept {
			a, target = b, target+step
		}
	}
	return a
}

// fixed returns the smallest fixed number of replicas that keeps the limit. It returns false if none
// within the bounds does; the largest is then tried.
func (s *searcher) fixed(x *site) (a attempt, ok bool) {
	low, high := s.q.Min-1, s.q.Max+1
	best := attempt{}
	for high-low > 1 {
		n := (low + high) / 2
		a = s.try(x, autoscaler.Settings{Min: n, Max: n}, false)
		if a.kept {
			high, best, ok = n, a, true
		} else {
			low = n
		}
	}
	if !ok {
		best = s.try(x, autoscaler.Settings{Min: s.q.Max, Max: s.q.Max}, false)
	}
	return best, ok
}

// usual returns the outcome with the autoscaler of many: 80 % of the processor time, and Kubernetes'
// defaults. It returns false without measured processor times.
func (s *searcher) usual(x *site) (attempt, bool) {
	if len(x.replica.Usage) == 0 || x.replica.Cores == 0 || s.q.Min == s.q.Max {
		return attempt{}, false
	}
	return s.try(x, autoscaler.Settings{Min: s.q.Min, Max: s.q.Max, Source: autoscaler.Resource, Target: usualTarget}, true), true
}
