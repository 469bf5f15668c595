// Package random is a strategy that tries candidates in a seeded random order without repetition.
// It is a baseline for other strategies, and a fair sample of the space if the budget covers only a
// part.
package random

import (
	"math/rand/v2"

	"tuner/search"
	"tuner/search/standings"
	"tuner/search/tour"
)

// perVisit is the number of candidates of a pool that are tried before its engine process ends. Two
// per visit halve the launches of a plain permutation, and a small budget still reaches many pools.
const perVisit = 2

// mostShuffled is the largest number of candidates that are ordered in advance. With more, each is
// drawn on demand.
const mostShuffled = 200_000

// New returns a tour through all candidates in a random order, which reads its owner's ledger. The
// order visits the pools in turn, in an order drawn once, and takes the next two candidates of
// each.
func New(s search.Settings, l *standings.Ledger, candidates *search.Candidates) *tour.Tour {
	if n, _ := candidates.Len(); n > mostShuffled {
		return tour.NewLazy(s, l, search.PhaseSearch, n, drawn(s.Seed, candidates))
	}
	return tour.New(s, l, search.PhaseSearch, shuffled(s.Seed, candidates.All()))
}

func shuffled(seed uint64, candidates []search.Candidate) []search.Candidate {
	random := rand.New(rand.NewPCG(seed, 0))
	var pools [][]search.Candidate
	index := map[string]int{}
	for _, c := range candidates {
		key := c.PoolKey()
		i, ok := index[key]
		if !ok {
			i = len(pools)
			index[key] = i
			pools = append(pools, nil)
		}
		pools[i] = append(pools[i], c)
	}
	random.Shuffle(len(pools), func(i, j int) { pools[i], pools[j] = pools[j], pools[i] })
	for _, pool := range pools {
		random.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
	}
	order := make([]search.Candidate, 0, len(candidates))
	for len(order) < len(candidates) {
		for i, pool := range pools {
			n := min(perVisit, len(pool))
			order = append(order, pool[:n]...)
			pools[i] = pool[n:]
		}
	}
	return order
}

// drawn returns a function that draws a new candidate at each call, two of a pool after each other.
// It returns false after many known draws in a row, since hardly any candidate is left.
func drawn(seed uint64, candidates *search.Candidates) func() (search.Candidate, bool) {
	const patience = 1000
	random := rand.New(rand.NewPCG(seed, 0))
	known := map[string]bool{}
	var pool search.Candidate
	visits := perVisit
	return func() (search.Candidate, bool) {
		for range patience {
			if visits == perVisit {
				var ok bool
				if pool, ok = candidates.Draw(random); !ok {
					return search.Candidate{}, false
				}
				visits = 0
			}
			visits++
			c := candidates.Member(pool, random.IntN(candidates.Batchers()))
			if key := c.Key(); !known[key] {
				known[key] = true
				return c, true
			}
		}
		return search.Candidate{}, false
	}
}
