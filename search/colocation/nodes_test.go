package colocation

import (
	"fmt"
	"slices"
	"testing"

	"tuner/measure"
	"tuner/search/queuesim"
)

// onNodes returns settings of two models on 8 cores. The options of the first have up to 4 instances of a thread,
// and those of the second up to 3.
func onNodes(nodes ...int) Settings {
	model := func(name string, most int) Model {
		m := Model{Name: name, Load: measure.Load{RequestRate: 100, BatchSize: 1}, Limits: []Limit{{measure.LatencyP99, 0.05}}}
		for n := 1; n <= most; n++ {
			m.Options = append(m.Options, Option{Name: fmt.Sprint(n), Pool: fmt.Sprint(n), Knobs: []int{n}, Batcher: queuesim.Batcher{Instances: n},
				Curve: queuesim.ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}, Crowded: []float64{0.01}, Spread: 0.1, Threads: 1}})
		}
		return m
	}
	return Settings{Models: []Model{model("a", 4), model("b", 3)}, Cores: 8, Nodes: nodes, IsDivided: true, Least: 3e-4, Tuning: Default()}
}

// The models use 4 and 3 of 8 cores. On a machine with one node the first model gets the core that is left. With
// two nodes of 4 it goes to the second, so that each model has a node.
func TestCoresLeftOverStayOnANode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nodes, want []int
	}{
		{nil, []int{5, 3}},
		{[]int{8}, []int{5, 3}},
		{[]int{4, 4}, []int{4, 4}},
		// the second model has cores of two nodes in any case
		{[]int{4, 2, 2}, []int{4, 4}},
	} {
		x, err := New(onNodes(c.nodes...))
		if err != nil {
			t.Fatal(err)
		}
		if got := x.spread([]int{4, 3}); !slices.Equal(got, c.want) {
			t.Errorf("nodes of %v: the cores are divided as %v, want %v", c.nodes, got, c.want)
		}
	}
}

// A model whose cores are of two nodes tells less about the same number of cores on one node.
func TestNodesOfASite(t *testing.T) {
	t.Parallel()
	x, err := New(onNodes(4, 4))
	if err != nil {
		t.Fatal(err)
	}
	at := func(cores ...int) site { return x.site(1, Cell{Options: []int{0, 2}, Cores: cores}) }
	if at(4, 4).nodes != 1 || at(6, 2).nodes != 1 || x.site(0, Cell{Options: []int{0, 0}, Cores: []int{6, 2}}).nodes != 2 || x.site(0, Cell{Options: []int{0, 0}}).nodes != 0 {
		t.Errorf("nodes of the sites: %d, %d, %d", at(4, 4).nodes, at(6, 2).nodes, x.site(0, Cell{Options: []int{0, 0}, Cores: []int{6, 2}}).nodes)
	}
	for cores, want := range map[int]int{0: 0, 1: 1, 4: 1, 5: 2, 8: 2} {
		if got := x.leastNodes(cores); got != want {
			t.Errorf("%d cores are of %d nodes at least, want %d", cores, got, want)
		}
	}
	d := Default().Deviations
	one, other := site{option: 1, cores: 3, nodes: 1}, site{option: 1, cores: 3, nodes: 2}
	if same, differ := d.kernel(one, one), d.kernel(one, other); differ >= same-d.Cores*d.Cores {
		t.Errorf("covariance %v on other nodes, %v on the same", differ, same)
	}
}
