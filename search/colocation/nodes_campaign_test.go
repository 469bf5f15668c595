package colocation_test

import (
	"testing"

	"tuner/internal/nodes"
)

// On a machine with two nodes of two cores, where cores of both cost half of the time again, the answer is within
// 5 % of the best division, which straddles no node.
func TestCampaignsOnTwoNodes(t *testing.T) {
	t.Parallel()
	for seed := uint64(0); seed < 3; seed++ {
		c := machine(seed)
		c.Nodes, c.Remote = []int{2, 2}, 0.5
		of := space(c)
		s := settings(c, of)
		s.IsShared, s.Nodes = false, c.Nodes
		x, n := run(t, c, of, s)
		answer, ok := x.Answer()
		most, cell := best(c, of, s)
		if !ok {
			t.Errorf("seed %d: no answer, the best is %v with %v", seed, most, cell)
			continue
		}
		carried := c.Scale(chosen(of, answer.Cell), answer.Cores)
		t.Logf("seed %d: %d trials, %v at %.3f, which carries %.3f; the best is %v with %.3f", seed, n, answer.Cores, answer.Scale, carried, cell.Cores, most)
		if min(answer.Scale, carried) < 0.95*most {
			t.Errorf("seed %d: %v at %.3f, the best is %v with %.3f", seed, answer.Cell, answer.Scale, cell, most)
		}
		if nodes.Straddling(c.Nodes, cell.Cores) == 0 && nodes.Straddling(c.Nodes, answer.Cores) > 0 {
			t.Errorf("seed %d: the answer's division is %v, the best is %v", seed, answer.Cores, cell.Cores)
		}
	}
}
