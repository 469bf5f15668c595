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
