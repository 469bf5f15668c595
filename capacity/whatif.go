package capacity

import (
	"sync"
	"time"

	"tuner/capacity/replica"
	"tuner/internal/parallel"
)

// WhatIf has the answers to questions near the asked one. They lie in the order of the axes: that of
// rate i, limit k and start s is at (i·len(Limits) + k)·len(Startups) + s.
type WhatIf struct {
	Rates    []float64 // factors of the asked traffic
	Limits   []float64 // s
	Startups []float64 // factors of the time that a pod takes to start
	Types    []string  // of machines, in the order of Answers
	Prices   []float64 // per hour of each type; 0: unknown
	// Answers are the cheapest fleets of each type, by type, then in the order of the axes
	Answers [][]Answer
}

// Answer is a fleet of a what-if.
type Answer struct {
	Satisfied     bool
	Configuration string
	Min, Max      int
	Target        float64 // requests/s; 0: a fixed number
	Hours         float64 // of replicas in a day
	Within        float64
	P99           float64 // s
}

// Factors of the axes. A simulation of more extremes costs as much and is asked for less.
func whatIfRates() []float64    { return []float64{0.5, 0.75, 1, 1.5, 2} }
func whatIfLimits() []float64   { return []float64{0.7, 1, 1.5} }
func whatIfStartups() []float64 { return []float64{0.5, 1, 4} }

// WhatIfs answers the question for other rates, limits and startup times, for each type of machine by
// itself. So a page can also weigh the types by other prices. The question has an answer (Find).
func WhatIfs(q Question, replicas []replica.Replica) (WhatIf, error) {
	w := WhatIf{Rates: whatIfRates(), Startups: whatIfStartups()}
	for _, f := range whatIfLimits() {
		w.Limits = append(w.Limits, Significant(f*q.Limit.Seconds()))
	}
	byType := map[string][]replica.Replica{}
	for _, r := range replicas {
		if len(byType[r.Type]) == 0 {
			w.Types, w.Prices = append(w.Types, r.Type), append(w.Prices, r.Price)
		}
		byType[r.Type] = append(byType[r.Type], r)
	}
	n := len(w.Rates) * len(w.Limits) * len(w.Startups)
	asked := make([]Question, n)
	for i := range asked {
		x := q
		x.slower = w.Startups[i%len(w.Startups)]
		x.Limit = time.Duration(w.Limits[i/len(w.Startups)%len(w.Limits)] * float64(time.Second))
		x.Traffic = q.Traffic.Times(w.Rates[i/len(w.Startups)/len(w.Limits)])
		if err := x.check(); err != nil {
			return WhatIf{}, err
		}
		asked[i] = x
	}
	for _, kind := range w.Types {
		same := byType[kind]
		known, answers := tablesOf(asked, same), make([]Answer, n)
		parallel.For(n, func(i int) { answers[i] = answer(&asked[i], same, known) })
		w.Answers = append(w.Answers, answers)
	}
	return w, nil
}

// tables has the tables of replicas. Each is simulated when it is needed first. Questions that differ
// only in the startup time have the same, and most that differ in the rate.
type tables map[tableKey]func() replica.Table

// tableKey has what a table depends on, among questions of a what-if.
type tableKey struct {
	replica, behind int
	limit           time.Duration
}

func tablesOf(asked []Question, replicas []replica.Replica) tables {
	t := tables{}
	for i := range asked {
		q := &asked[i]
		for k := range replicas {
			r := &replicas[k]
			t[tableKey{k, q.behind(r), q.Limit}] = sync.OnceValue(func() replica.Table { return q.table(r) })
		}
	}
	return t
}

// answer finds the cheapest fleet, without its alternatives.
func answer(q *Question, replicas []replica.Replica, known tables) Answer {
	s := searcherWith(q, replicas, func(k int) replica.Table { return known[tableKey{k, q.behind(&replicas[k]), q.Limit}]() })
	f := finding{searcher: s}
	f.collect()
	chosen, kept := f.best()
	b := s.fleet(&chosen, "chosen")
	return Answer{kept, b.Configuration, b.Scaling.Min, b.Scaling.Max, Significant(b.Scaling.Target), b.Hours, b.Within, b.P99}
}
