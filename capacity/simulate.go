package capacity

import (
	"math"
	"time"

	"tuner/capacity/autoscaler"
	"tuner/capacity/replica"
	"tuner/capacity/traffic"
)

// stepSeconds is the length of a step of the simulation.
const stepSeconds = float64(traffic.Step) / float64(time.Second)

// shares are the shares of requests within a limit by the rate of a replica, at equal distances for
// quick look-ups.
type shares struct {
	scale  float64 // entries per requests/s
	values []float64
}

// resolution is the number of distances between the entries of shares.
const resolution = 512

func newShares(t *replica.Table, limit int) shares {
	s := shares{scale: resolution / t.Highest(), values: make([]float64, resolution+1)}
	for i := range s.values {
		s.values[i] = t.Within(limit, float64(i)/s.scale)
	}
	return s
}

// at returns the share at a rate, and that of the highest rate above it.
func (s *shares) at(rate float64) float64 {
	x := rate * s.scale
	i := int(x)
	if i >= resolution {
		return s.values[resolution]
	}
	return s.values[i] + (s.values[i+1]-s.values[i])*(x-float64(i))
}

// site is a configuration on a type of machine, ready to be simulated in numbers.
type site struct {
	replica *replica.Replica
	table   replica.Table
	// limits are the shares by limit: that of the question first, then those of the table of latencies
	limits  []shares
	seconds []float64 // of the limits
	highest float64   // requests/s of one replica up to which it has a steady state
	safe    float64   // requests/s of one replica at which the share of the question is kept
	startup int       // steps from the wish for a pod to its first request
}

// fleetState is carried from step to step by a simulation.
type fleetState struct {
	ready    int
	starting []batch // pods that start, in the order of their readiness
	backlog  float64 // requests that wait beyond what the replicas answer
	rates    []float64
	next     int // of rates: the oldest
}

// batch is a group of pods that are ready from a step on.
type batch struct{ step, pods int }

// pods returns the number of pods that are not ready yet.
func (f *fleetState) pending() (pods int) {
	for _, b := range f.starting {
		pods += b.pods
	}
	return pods
}

// arrive makes the pods ready whose time has come.
func (f *fleetState) arrive(step int) {
	if len(f.starting) == 0 {
		return
	}
	n := 0
	for n < len(f.starting) && f.starting[n].step <= step {
		f.ready += f.starting[n].pods
		n++
	}
	f.starting = f.starting[:copy(f.starting, f.starting[n:])]
}

// resize starts or removes pods. Kubernetes removes those first that are not ready, and of these the
// youngest.
func (f *fleetState) resize(change, readyAt int) {
	if change > 0 {
		f.starting = append(f.starting, batch{readyAt, change})
		return
	}
	for remove := -change; remove > 0; {
		last := len(f.starting) - 1
		if last < 0 {
			f.ready -= remove
			return
		}
		n := min(remove, f.starting[last].pods)
		remove -= n
		if f.starting[last].pods -= n; f.starting[last].pods == 0 {
			f.starting = f.starting[:last]
		}
	}
}

// served describes the service of a step's requests.
type served struct {
	answered float64 // requests
	rate     float64 // of a replica, requests/s; the highest one while requests wait
	// wait0 and wait1 are the seconds that a request waits for the backlog at the beginning and at the
	// end of the step
	wait0, wait1 float64
}

// serve sends a step's requests to the ready replicas. Requests beyond what they answer wait, as a
// fluid; those of a steady state have the latencies of the simulated queue.
func (f *fleetState) serve(s *site, requests float64) served {
	ready := float64(f.ready)
	able := ready * s.highest * stepSeconds
	if f.backlog == 0 && requests <= able {
		return served{answered: requests, rate: requests / (ready * stepSeconds)}
	}
	x := served{rate: s.highest, wait0: f.backlog / (ready * s.highest)}
	x.answered = min(able, f.backlog+requests)
	f.backlog = max(0, f.backlog+requests-able)
	x.wait1 = f.backlog / (ready * s.highest)
	return x
}

// within returns the share of a step's requests within a limit, by its index.
func (x served) within(s *site, limit int) float64 {
	steady := s.limits[limit].at(x.rate)
	if x.wait0 == 0 && x.wait1 == 0 {
		return steady
	}
	// The wait changes linearly within the step. A request keeps the limit while the wait leaves the
	// time that a batch takes.
	left := s.seconds[limit] - s.shortest()
	low, high := min(x.wait0, x.wait1), max(x.wait0, x.wait1)
	switch {
	case high <= left:
		return steady
	case low >= left:
		return 0
	}
	return steady * (left - low) / (high - low)
}

// shortest returns the seconds of the shortest answer.
func (s *site) shortest() float64 { return s.replica.Curve.Overhead + s.replica.Curve.Alone[0] }

// outcome has the figures of a setting under a traffic.
type outcome struct {
	podSteps  float64
	requests  float64
	good      []float64 // requests within each limit
	worstDay  float64   // the lowest share of a day within the first limit
	peak      int       // pods
	changes   int       // of the number of pods
	shortfall float64   // requests that wait at the end
}

// run simulates a setting over the days of a traffic. With all, it also fills the limits after the
// first. A nil autoscaler keeps the first number of pods. each gets every step, unless it is nil.
func (s *site) run(q *Question, days [][]float64, a *autoscaler.Autoscaler, source autoscaler.Source, first int, all bool, each func(Moment)) outcome {
	o := outcome{good: make([]float64, len(s.limits)), worstDay: 1}
	f := fleetState{ready: first, rates: make([]float64, q.windowSteps()+lagSteps)}
	counted := 1
	if all {
		counted = len(s.limits)
	}
	wanted, step := first, 0
	if len(days) > 0 && len(days[0]) > 0 {
		for i := range f.rates {
			f.rates[i] = min(days[0][0]/stepSeconds, float64(first)*s.highest)
		}
	}
	for _, day := range days {
		requests, good := 0.0, 0.0
		for _, n := range day {
			f.arrive(step)
			if a != nil {
				if next := a.Sync(time.Duration(step)*traffic.Step, wanted, f.reading(s, source)); next != wanted {
					f.resize(next-wanted, step+s.startup)
					f.arrive(step)
					wanted = next
					o.changes++
				}
			}
			x := f.serve(s, n)
			f.rates[f.next] = x.answered / stepSeconds
			f.next = (f.next + 1) % len(f.rates)
			for i := range counted {
				within := n * x.within(s, i)
				o.good[i] += within
				if i == 0 {
					good += within
				}
			}
			if each != nil {
				each(Moment{Requests: n, Ready: f.ready, Misses: n * (1 - x.within(s, 0))})
			}
			requests += n
			o.podSteps += float64(wanted)
			o.peak = max(o.peak, wanted)
			step++
		}
		o.requests += requests
		if requests > 0 {
			o.worstDay = min(o.worstDay, good/requests)
		}
	}
	o.shortfall = f.backlog
	return o
}

// lagSteps is the age of the newest sample that the autoscaler sees: Prometheus scrapes as often as it
// looks.
const lagSteps = 1

// reading returns what the autoscaler sees: the mean over the metric's window, which ends before the
// last step. A pod that starts has no metric.
func (f *fleetState) reading(s *site, source autoscaler.Source) autoscaler.Reading {
	sum := 0.0
	window := len(f.rates) - lagSteps
	for i := range window {
		sum += f.rates[(f.next+i)%len(f.rates)]
	}
	rate := sum / float64(window)
	r := autoscaler.Reading{Measured: f.ready}
	switch source {
	case autoscaler.Resource:
		r.Unready = f.pending() // its processor time does not count while it starts
		r.Request = int64(s.replica.Cores * 1000)
		r.Sum = int64(float64(f.ready) * s.replica.UsageAt(rate/float64(f.ready)) * 1000)
	default:
		r.Missing = f.pending()
		r.Sum = int64(math.Round(rate * 1000))
	}
	return r
}
