package random

import (
	"slices"
	"testing"

	"tuner/search"
)

// candidates makes 5 pools with 7 candidates each.
func candidates() []search.Candidate {
	var list []search.Candidate
	for pool := range 5 {
		for batch := range 7 {
			list = append(list, search.NewCandidate(
				search.Setting{Knob: search.KnobInstanceCount, Value: search.IntValue(pool + 1)},
				search.Setting{Knob: search.KnobMaxBatchSize, Value: search.IntValue(batch + 1)}))
		}
	}
	return list
}

func order(seed uint64) []string {
	var keys []string
	for _, c := range shuffled(seed, candidates()) {
		keys = append(keys, c.Key())
	}
	return keys
}

func TestOrderIsASeededPermutation(t *testing.T) {
	t.Parallel()
	var all []string
	for _, c := range candidates() {
		all = append(all, c.Key())
	}
	first := order(1)
	if !slices.Equal(first, order(1)) {
		t.Error("the same seed gives another order")
	}
	if slices.Equal(first, order(2)) || slices.Equal(first, all) {
		t.Error("the seed does not change the order")
	}
	slices.Sort(first)
	slices.Sort(all)
	if !slices.Equal(first, all) {
		t.Errorf("the order has %v, want each candidate once: %v", first, all)
	}
}

// From a space of 10^12 candidates each is drawn on demand: none twice, two of a pool after each
// other, depending on the seed alone.
func TestDrawn(t *testing.T) {
	t.Parallel()
	space := search.Space{Facts: search.Facts{Batching: true}}
	for _, name := range []string{"a", "b", "c", search.KnobMaxBatchSize} {
		k := search.Knob{Name: name}
		for i := range 1000 {
			k.Values = append(k.Values, search.IntValue(i+1))
		}
		space.Knobs = append(space.Knobs, k)
	}
	draw := func(seed uint64) (keys, pools []string) {
		next := drawn(seed, space.Candidates())
		for range 1000 {
			c, ok := next()
			if !ok {
				t.Fatalf("no more after %d", len(keys))
			}
			keys, pools = append(keys, c.Key()), append(pools, c.PoolKey())
		}
		return keys, pools
	}
	keys, pools := draw(1)
	again, _ := draw(1)
	other, _ := draw(2)
	if !slices.Equal(keys, again) || slices.Equal(keys, other) {
		t.Error("the draws do not follow from the seed")
	}
	for i := 1; i < len(pools); i += 2 {
		if pools[i] != pools[i-1] {
			t.Fatalf("draws %d and %d are of different pools", i-1, i)
		}
	}
	slices.Sort(keys)
	if len(slices.Compact(keys)) != 1000 {
		t.Error("a candidate is drawn twice")
	}
	// All of six candidates are drawn, and then the function ends.
	space.Knobs = []search.Knob{{Name: "a", Values: []search.Value{"1", "2", "3"}}, {Name: search.KnobMaxBatchSize, Values: []search.Value{"1", "2"}}}
	next, n := drawn(1, space.Candidates()), 0
	for _, ok := next(); ok; _, ok = next() {
		n++
	}
	if n != 6 {
		t.Errorf("%d of 6 candidates are drawn", n)
	}
}

func TestOrderTakesTwoOfAPoolAtATime(t *testing.T) {
	t.Parallel()
	list := shuffled(3, candidates())
	// 7 candidates are 2 + 2 + 2 + 1 visits, so all 5 pools are reached by the first 10 candidates.
	pools := map[string]int{}
	for i, c := range list[:10] {
		pools[c.PoolKey()]++
		if i%2 == 1 && c.PoolKey() != list[i-1].PoolKey() {
			t.Errorf("candidates %d and %d are of different pools", i-1, i)
		}
	}
	if len(pools) != 5 {
		t.Errorf("the first ten candidates are of %d pools, want all 5", len(pools))
	}
}
