package search

import (
	"cmp"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// Candidates are the legal and distinct candidates of a space. In their order, the values of the
// most expensive scope change slowest, so candidates of one pool are neighbours. They are the
// product of two parts, since no folding rule looks at both: the pools, and the settings of the
// batcher. The latter are the same in every pool. Only the requested part is expanded, so a space
// may be far larger than memory. A pool is represented by the candidate that sets only the pool's
// own knobs.
type Candidates struct {
	rules    folding
	pools    part
	batchers part
	settings func() [][]Value // of the batcher, by the part's knobs; computed once
	tallies  func() tallies   // computed once
	joint    Joint            // of several models; the other fields are then empty
}

// The sizes up to which a part of a space is enumerated. The pools are enumerated for counting,
// which takes a second. The settings of a pool's batcher are kept in memory.
const (
	countablePools = 1 << 18
	mostBatchers   = 100_000
)

// Candidates returns the space's candidates.
func (s Space) Candidates() *Candidates {
	if s.IsSeveral() {
		return &Candidates{joint: s.Joint}
	}
	f := newFolding(s)
	c := &Candidates{rules: f, pools: part{rules: f}, batchers: part{rules: f, isBatcher: true}}
	for i, k := range s.Knobs {
		target := &c.pools
		if poolScope(k.Name) == ScopeBatcher {
			target = &c.batchers
		}
		target.knobs = append(target.knobs, i)
	}
	slices.SortStableFunc(c.pools.knobs, func(a, b int) int {
		return int(poolScope(s.Knobs[a].Name)) - int(poolScope(s.Knobs[b].Name))
	})
	c.settings = sync.OnceValue(c.expandBatchers)
	c.tallies = sync.OnceValue(c.tally)
	return c
}

// poolScope returns the scope that PoolKey sees: an unknown knob is part of the pool.
func poolScope(knob string) Scope {
	scope, known := KnobScope(knob)
	if !known {
		return ScopePool
	}
	return scope
}

// Len returns the number of candidates without the default. If there are too many pools to
// enumerate, it is an upper bound, and exact is false.
func (c *Candidates) Len() (n int, exact bool) {
	pools, exact := c.PoolCount()
	return times(pools, c.Batchers()), exact
}

// PoolCount returns the number of pools, with the same exactness as Len.
func (c *Candidates) PoolCount() (n int, exact bool) {
	if c.joint != nil {
		return c.joint.PoolCount()
	}
	if c.Batchers() == 0 {
		return 0, true
	}
	if n := c.pools.size(); n > countablePools {
		return n, false
	}
	for _, t := range c.tallies().pools {
		if t.illegal == "" && !t.isRepeated && !c.isVoid(t.isEmpty) {
			n += t.count
		}
	}
	return n, true
}

// Batchers returns the number of settings of the batcher, which is the same in each pool.
func (c *Candidates) Batchers() int {
	if c.joint != nil {
		return c.joint.Batchers()
	}
	return len(c.settings())
}

// BatcherCombinations returns the number of raw combinations of the batcher's knobs, and whether
// they fit into memory.
func (c *Candidates) BatcherCombinations() (n int, ok bool) {
	if c.joint != nil {
		return c.joint.BatcherCombinations()
	}
	n = c.batchers.size()
	return n, n <= mostBatchers
}

// isVoid reports whether a pool has no candidate except possibly the default. isEmpty means that it
// sets no knob.
func (c *Candidates) isVoid(isEmpty bool) bool { return isEmpty && len(c.batchers.knobs) == 0 }

// Pools yields the pools.
func (c *Candidates) Pools() iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		next := c.poolWalk()
		for pool, ok := next(); ok; pool, ok = next() {
			if !yield(pool) {
				return
			}
		}
	}
}

// poolWalk returns a function that returns the next pool at each call; false at the end.
func (c *Candidates) poolWalk() func() (Candidate, bool) {
	if c.joint != nil {
		return c.joint.PoolWalk()
	}
	w, values := newWalk(c.pools), c.rules.none()
	return func() (Candidate, bool) {
		if c.Batchers() == 0 {
			return Candidate{}, false
		}
		for {
			v, ok := w.step(values)
			if !ok {
				return Candidate{}, false
			}
			if v.illegal == "" && !v.isRepeated && !c.isVoid(v.isEmpty) {
				return c.rules.candidate(values), true
			}
		}
	}
}

// Members lists the candidates of a pool.
func (c *Candidates) Members(pool Candidate) []Candidate {
	list := make([]Candidate, c.Batchers())
	for i := range list {
		list[i] = c.Member(pool, i)
	}
	return list
}

// Member returns the i-th of Members.
func (c *Candidates) Member(pool Candidate, i int) Candidate {
	if c.joint != nil {
		return c.joint.Member(pool, i)
	}
	values := c.rules.values(pool)
	for j, k := range c.batchers.knobs {
		values[k] = c.settings()[i][j]
	}
	return c.rules.candidate(values)
}

// Walk returns a function that returns the next candidate at each call; false at the end.
func (c *Candidates) Walk() func() (Candidate, bool) {
	next, members := c.poolWalk(), []Candidate(nil)
	return func() (Candidate, bool) {
		if len(members) == 0 {
			pool, ok := next()
			if !ok {
				return Candidate{}, false
			}
			members = c.Members(pool)
		}
		first := members[0]
		members = members[1:]
		return first, true
	}
}

// First returns the first candidate; false without one.
func (c *Candidates) First() (Candidate, bool) { return c.Walk()() }

// All expands the space.
func (c *Candidates) All() []Candidate {
	var list []Candidate
	for pool := range c.Pools() {
		list = append(list, c.Members(pool)...)
	}
	return list
}

// Draw returns a random pool, which may repeat. It returns false after many illegal combinations in
// a row, since there may be no legal one.
func (c *Candidates) Draw(random *rand.Rand) (pool Candidate, ok bool) {
	const patience = 10_000
	if c.joint != nil {
		return c.joint.Draw(random)
	}
	if c.Batchers() == 0 || c.pools.size() == 0 {
		return Candidate{}, false
	}
	for range patience {
		values := c.rules.none()
		for _, k := range c.pools.knobs {
			list := c.rules.space.Knobs[k].Values
			values[k] = list[random.IntN(len(list))]
		}
		if pool, ok := c.pool(values); ok {
			return pool, true
		}
	}
	return Candidate{}, false
}

// pool returns the pool of a combination of the pools' knobs, which it makes canonical; false if it
// is illegal.
func (c *Candidates) pool(values []Value) (Candidate, bool) {
	v := c.pools.fold(values)
	pool := c.rules.candidate(values)
	return pool, v.illegal == "" && !c.isVoid(pool.IsDefault())
}

// expandBatchers lists the legal and distinct settings of the batcher.
func (c *Candidates) expandBatchers() [][]Value {
	var list [][]Value
	w, values := newWalk(c.batchers), c.rules.none()
	for v, ok := w.step(values); ok; v, ok = w.step(values) {
		if v.illegal == "" && !v.isRepeated {
			own := make([]Value, len(c.batchers.knobs))
			for j, k := range c.batchers.knobs {
				own[j] = values[k]
			}
			list = append(list, own)
		}
	}
	return list
}

// part is a subset of a space's knobs, the pools' or the batcher's, with the folding rules that
// look at them.
type part struct {
	rules     folding
	isBatcher bool
	knobs     []int // indices in the space, most expensive scope first
}

// size returns the number of raw combinations, limited to the range of int.
func (p part) size() int {
	n := 1
	for _, k := range p.knobs {
		n = times(n, len(p.rules.space.Knobs[k].Values))
	}
	return n
}

// times returns the product of two non-negative numbers, limited to the range of int.
func times(a, b int) int {
	if b > 0 && a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}

// set writes the i-th combination into values. The last knob changes fastest.
func (p part) set(values []Value, i int) {
	for _, k := range slices.Backward(p.knobs) {
		list := p.rules.space.Knobs[k].Values
		values[k] = list[i%len(list)]
		i /= len(list)
	}
}

// verdict is the result of the rules for a combination, or for a part of one. Of several reasons
// the one of the first rule counts.
type verdict struct {
	merged, illegal     string // reason for merging into another combination; reason for leaving it out
	mergedBy, illegalBy int    // indices of the rules
}

// and combines the verdicts on two parts of a combination.
func (v verdict) and(w verdict) verdict {
	if v.merged == "" || w.merged != "" && w.mergedBy < v.mergedBy {
		v.merged, v.mergedBy = w.merged, w.mergedBy
	}
	if v.illegal == "" || w.illegal != "" && w.illegalBy < v.illegalBy {
		v.illegal, v.illegalBy = w.illegal, w.illegalBy
	}
	return v
}

// fold rewrites this part of a combination into its canonical form. It returns the reason for a
// difference, or for being illegal.
func (p part) fold(values []Value) verdict {
	var v verdict
	for i, r := range merging {
		if r.isBatcher != p.isBatcher {
			continue
		}
		if reason := r.apply(p.rules, values); reason != "" && v.merged == "" {
			v.merged, v.mergedBy = reason, i
		}
	}
	for i, r := range refusing {
		if r.isBatcher != p.isBatcher {
			continue
		}
		if reason := r.apply(p.rules, values); reason != "" {
			v.illegal, v.illegalBy = reason, i
			break
		}
	}
	return v
}

// walk enumerates a part's combinations.
type walk struct {
	part   part
	at, to int
	seen   map[string]bool // canonical forms so far
	key    []byte
}

func newWalk(p part) *walk { return &walk{part: p, to: p.size(), seen: map[string]bool{}} }

// finding is the result of a walk for a combination.
type finding struct {
	verdict
	isRepeated bool // its canonical form occurred before
	isEmpty    bool // its canonical form sets no knob
}

// step writes the canonical form of the next combination into values; ok is false at the end.
func (w *walk) step(values []Value) (s finding, ok bool) {
	if w.at >= w.to {
		return finding{}, false
	}
	w.part.set(values, w.at)
	w.at++
	s.verdict, s.isEmpty = w.part.fold(values), true
	w.key = w.key[:0]
	for _, k := range w.part.knobs {
		s.isEmpty = s.isEmpty && values[k] == ""
		w.key = append(append(w.key, values[k]...), 0)
	}
	if s.illegal != "" {
		return s, true
	}
	if s.isRepeated = w.seen[string(w.key)]; !s.isRepeated {
		w.seen[string(w.key)] = true
	}
	return s, true
}

// tally counts the combinations of a part that have the same finding.
type tally struct {
	finding
	count  int
	first  int     // index of the first of them
	values []Value // its canonical form
}

// tallies are those of both parts, ordered by first.
type tallies struct{ pools, batchers []tally }

func (c *Candidates) tally() tallies { return tallies{c.pools.tally(), c.batchers.tally()} }

func (p part) tally() []tally {
	var list []tally
	places := map[finding]int{}
	w, values := newWalk(p), p.rules.none()
	for s, ok := w.step(values); ok; s, ok = w.step(values) {
		i, known := places[s]
		if !known {
			i = len(list)
			places[s] = i
			list = append(list, tally{finding: s, first: w.at - 1, values: slices.Clone(values)})
		}
		list[i].count++
	}
	return list
}

// Folds returns the combinations that were left out or merged into others, with the reasons. Each
// raw combination is counted by one of the candidates or folds. The result is empty if there are
// too many pools to enumerate.
func (c *Candidates) Folds() []Fold {
	if c.joint != nil {
		return c.joint.Folds()
	}
	if len(c.rules.space.Knobs) == 0 || c.pools.size() > countablePools {
		return nil
	}
	type pair struct{ pool, batcher tally }
	var pairs []pair // all combinations with the same two tallies share a reason
	for _, p := range c.tallies().pools {
		for _, b := range c.tallies().batchers {
			pairs = append(pairs, pair{p, b})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(a.pool.first-b.pool.first, a.batcher.first-b.batcher.first)
	})
	var folds Folds
	for _, x := range pairs {
		v, n := x.pool.verdict.and(x.batcher.verdict), times(x.pool.count, x.batcher.count)
		if v.illegal != "" {
			folds.Add(v.illegal, "", n)
			continue
		}
		values := slices.Clone(x.pool.values)
		for _, k := range c.batchers.knobs {
			values[k] = x.batcher.values[k]
		}
		key := c.rules.candidate(values).Key()
		isRepeated := x.pool.isRepeated || x.batcher.isRepeated || x.pool.isEmpty && x.batcher.isEmpty
		switch {
		case v.merged != "" && isRepeated:
			folds.Add(v.merged, key, n)
		case v.merged != "":
			folds.Add(v.merged, key, 0)
		case isRepeated:
			folds.Add("the same value is listed twice", key, n)
		}
	}
	return folds.List()
}
