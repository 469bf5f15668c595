package nodes_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/nodes"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		free, counts []int
		want         [][]nodes.Share
		straddling   int
	}{
		"one node":      {[]int{8}, []int{2, 4}, [][]nodes.Share{{{0, 4, 2}}, {{0, 0, 4}}}, 0},
		"a node each":   {[]int{4, 4}, []int{4, 4}, [][]nodes.Share{{{0, 0, 4}}, {{1, 0, 4}}}, 0},
		"fewest free":   {[]int{4, 4}, []int{1, 3, 4}, [][]nodes.Share{{{1, 3, 1}}, {{1, 0, 3}}, {{0, 0, 4}}}, 0},
		"over the edge": {[]int{4, 4}, []int{6, 2}, [][]nodes.Share{{{0, 0, 4}, {1, 0, 2}}, {{1, 2, 2}}}, 1},
		// the first fills the smaller node, so that the two others fit into the larger one
		"uneven nodes": {[]int{5, 3}, []int{3, 3, 2}, [][]nodes.Share{{{1, 0, 3}}, {{0, 0, 3}}, {{0, 3, 2}}}, 0},
		"no owner":     {[]int{2}, []int{0, 1}, [][]nodes.Share{nil, {{0, 0, 1}}}, 0},
	} {
		if diff := cmp.Diff(c.want, nodes.Place(c.free, c.counts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := nodes.Straddling(c.free, c.counts); got != c.straddling {
			t.Errorf("%s: %d nodes too many, want %d", name, got, c.straddling)
		}
	}
}

// Every owner gets what it needs, no processor has two owners, and an owner has several nodes only if no
// node had enough left.
func TestPlaceGivesNothingTwice(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		free := []int{1 + random.IntN(8), 1 + random.IntN(8), 1 + random.IntN(8)}
		var counts []int
		for left := free[0] + free[1] + free[2]; left > 0 && random.IntN(4) > 0; {
			n := 1 + random.IntN(left)
			counts, left = append(counts, n), left-n
		}
		taken := make([][]bool, len(free))
		for i, n := range free {
			taken[i] = make([]bool, n)
		}
		for i, shares := range nodes.Place(free, counts) {
			sum := 0
			for _, s := range shares {
				sum += s.Count
				for k := s.From; k < s.From+s.Count; k++ {
					if taken[s.Node][k] {
						t.Fatalf("%v on %v: processor %d of node %d is given twice", counts, free, k, s.Node)
					}
					taken[s.Node][k] = true
				}
			}
			if sum != counts[i] {
				t.Fatalf("%v on %v: owner %d has %d", counts, free, i, sum)
			}
			if len(shares) > 1 && counts[i] == slices.Max(counts) && counts[i] <= slices.Max(free) && slices.Index(counts, counts[i]) == i {
				t.Fatalf("%v on %v: the largest owner straddles nodes: %v", counts, free, shares)
			}
		}
	}
}
