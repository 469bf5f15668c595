package search

import (
	"cmp"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// Candidates are the legal and distinct candidates of a space, in an order that goes through the values of the dearest scope
// slowest, so that those of one pool are neighbours. They are the product of two parts, since no folding rule looks at both: the
// pools, and the settings of the batcher, which are the same in every pool. Nothing is expanded but what is asked for, so a space
// may be far larger than memory. A pool is given by the candidate that sets nothing but the pool's own knobs.
type Candidates struct {
	rules    folding
	pools    part
	batchers part
	settings func() [][]Value // of the batcher, by the part's knobs; made once
	tallies  func() tallies   // made once
}

// The sizes up to which a part of a space is gone through: the pools to be counted, which takes a second, and the settings of a pool's
// batcher, which are held in memory.
const (
	countablePools = 1 << 18
	mostBatchers   = 100_000
)

// Candidates returns the space's candidates.
func (s Space) Candidates() *Candidates {
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

// poolScope is the scope that PoolKey sees: a knob that is not known is part of the pool.
func poolScope(knob string) Scope {
	scope, known := KnobScope(knob)
	if !known {
		return ScopePool
	}
	return scope
}

// Len is the number of candidates, the default not counted. Where there are too many pools to be gone through it is the most that
// there may be, and exact is false.
func (c *Candidates) Len() (n int, exact bool) {
	pools, exact := c.PoolCount()
	return times(pools, c.Batchers()), exact
}

// PoolCount is the number of pools, as Len is that of candidates.
func (c *Candidates) PoolCount() (n int, exact bool) {
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

// Batchers is the number of settings of the batcher, the same in each pool.
func (c *Candidates) Batchers() int { return len(c.settings()) }

// BatcherCombinations is the number of raw combinations of the batcher's knobs, and whether they can be held in memory.
func (c *Candidates) BatcherCombinations() (n int, ok bool) {
	n = c.batchers.size()
	return n, n <= mostBatchers
}

// isVoid reports whether a pool has no candidate, but the default at most, by whether it touches no knob.
func (c *Candidates) isVoid(isEmpty bool) bool { return isEmpty && len(c.batchers.knobs) == 0 }

// Pools goes through the pools.
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

// poolWalk returns a function each call of which takes the next pool; it is false at the end.
func (c *Candidates) poolWalk() func() (Candidate, bool) {
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

// Member is the i-th of Members.
func (c *Candidates) Member(pool Candidate, i int) Candidate {
	values := c.rules.values(pool)
	for j, k := range c.batchers.knobs {
		values[k] = c.settings()[i][j]
	}
	return c.rules.candidate(values)
}

// Walk returns a function each call of which takes the next candidate; it is false at the end.
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

// First is the first candidate, and false where there is none.
func (c *Candidates) First() (Candidate, bool) { return c.Walk()() }

// All expands the space.
func (c *Candidates) All() []Candidate {
	var list []Candidate
	for pool := range c.Pools() {
		list = append(list, c.Members(pool)...)
	}
	return list
}

// Draw is a random pool, not necessarily a new one; false where so many combinations in a row are illegal that there may be none.
func (c *Candidates) Draw(random *rand.Rand) (pool Candidate, ok bool) {
	const patience = 10_000
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

// pool is the pool that stands for a combination of the pools' knobs, which is made canonical; false where it is illegal.
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

// part is some of a space's knobs, the pools' or the batcher's, with the folding rules that look at them.
type part struct {
	rules     folding
	isBatcher bool
	knobs     []int // places in the space, those of the dearest scope first
}

// size is the number of raw combinations, as far as an int reaches.
func (p part) size() int {
	n := 1
	for _, k := range p.knobs {
		n = times(n, len(p.rules.space.Knobs[k].Values))
	}
	return n
}

// times is the product of two numbers that are not negative, as far as an int reaches.
func times(a, b int) int {
	if b > 0 && a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}

// set writes the i-th combination into values; the last knob turns fastest.
func (p part) set(values []Value, i int) {
	for _, k := range slices.Backward(p.knobs) {
		list := p.rules.space.Knobs[k].Values
		values[k] = list[i%len(list)]
		i /= len(list)
	}
}

// verdict is what the rules make of a combination, or of a part of one. Of several reasons the one of the first rule counts.
type verdict struct {
	merged, illegal     string // why it stands for another combination; why it is left out
	mergedBy, illegalBy int    // the rules' places
}

// and joins the verdicts on two parts of a combination.
func (v verdict) and(w verdict) verdict {
	if v.merged == "" || w.merged != "" && w.mergedBy < v.mergedBy {
		v.merged, v.mergedBy = w.merged, w.mergedBy
	}
	if v.illegal == "" || w.illegal != "" && w.illegalBy < v.illegalBy {
		v.illegal, v.illegalBy = w.illegal, w.illegalBy
	}
	return v
}

// fold rewrites a combination into its canonical form, as far as this part goes, and says why that differs, or why it is illegal.
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

// walk goes through a part's combinations.
type walk struct {
	part   part
	at, to int
	seen   map[string]bool // canonical forms that came up
	key    []byte
}

func newWalk(p part) *walk { return &walk{part: p, to: p.size(), seen: map[string]bool{}} }

// finding is what a walk finds out about a combination.
type finding struct {
	verdict
	isRepeated bool // its canonical form came up before
	isEmpty    bool // its canonical form touches no knob
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

// tally is how many combinations of a part have the same said of them.
type tally struct {
	finding
	count  int
	first  int     // place of the first of them
	values []Value // its canonical form
}

// tallies are those of both parts, in the order of their firsts.
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

// Folds says which combinations were left out or merged into others, and why: one of the candidates or folds counts each raw
// combination. It says nothing where there are too many pools to be gone through.
func (c *Candidates) Folds() []Fold {
	if len(c.rules.space.Knobs) == 0 || c.pools.size() > countablePools {
		return nil
	}
	type pair struct{ pool, batcher tally }
	var pairs []pair // all combinations with the same two tallies have the same reason
	for _, p := range c.tallies().pools {
		for _, b := range c.tallies().batchers {
			pairs = append(pairs, pair{p, b})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(a.pool.first-b.pool.first, a.batcher.first-b.batcher.first)
	})
	folds := foldCounter{at: map[string]int{}}
	for _, x := range pairs {
		v, n := x.pool.verdict.and(x.batcher.verdict), times(x.pool.count, x.batcher.count)
		if v.illegal != "" {
			folds.add(v.illegal, "", n)
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
			folds.add(v.merged, key, n)
		case v.merged != "":
			folds.add(v.merged, key, 0)
		case isRepeated:
			folds.add("the same value is listed twice", key, n)
		}
	}
	return folds.list
}

// foldCounter sums folds by reason, in the order of their first appearance.
type foldCounter struct {
	list []Fold
	at   map[string]int
}

func (f *foldCounter) add(reason, into string, count int) {
	i, ok := f.at[reason]
	if !ok {
		i = len(f.list)
		f.at[reason] = i
		f.list = append(f.list, Fold{Reason: reason, Into: into})
	}
	f.list[i].Count += count
}
