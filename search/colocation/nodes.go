package colocation

import (
	"slices"

	"tuner/internal/nodes"
)

// On a machine with several NUMA nodes, memory is nearer to some cores than to others. What a model's cores on
// two nodes cost is not predicted. But cells where it has them on one tell less about it.

// nodesOf returns the number of nodes on which a division places a model; 0 for shared cores.
func (x *Search) nodesOf(model int, cores []int) int {
	switch {
	case cores == nil:
		return 0
	case len(x.settings.Nodes) < 2:
		return 1
	}
	return len(nodes.Place(x.settings.Nodes, cores)[model])
}

// leastNodes returns the least number of nodes that have some cores, where the rest of the division is open; 0
// for shared ones.
func (x *Search) leastNodes(cores int) int {
	switch {
	case cores == 0:
		return 0
	case len(x.settings.Nodes) < 2 || cores <= slices.Max(x.settings.Nodes):
		return 1
	}
	return len(nodes.Place(x.settings.Nodes, []int{cores})[0])
}

// straddling returns the number of nodes too many on which a division places models.
func (x *Search) straddling(cores []int) int {
	if len(x.settings.Nodes) < 2 {
		return 0
	}
	return nodes.Straddling(x.settings.Nodes, cores)
}
