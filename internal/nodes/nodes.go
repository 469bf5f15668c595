// Package nodes places the models of a server on the NUMA nodes of its machine, by numbers of processors
// alone. Whoever divides real processors (model/isolation), and whoever searches for a division
// (search/colocation), ask it, so that both mean the same placement. It knows neither processors nor
// models.
package nodes

import (
	"cmp"
	"slices"
)

// Share is a part of a node: Count of its free processors, from the index From on.
type Share struct{ Node, From, Count int }

// Place places owners on nodes. free has the number of free processors of each node, and counts what each
// owner needs; together they need no more than there are. It returns the shares of each owner.
//
// The owner with the most processors chooses first. It takes them from the node with the fewest free
// ones that are enough. If no node has enough, it takes them from several, the fullest first. So few owners
// straddle nodes.
func Place(free, counts []int) [][]Share {
	order := descending(counts)
	used := make([]int, len(free))
	placed := make([][]Share, len(counts))
	for _, i := range order {
		left := counts[i]
		for _, node := range chosen(free, used, left) {
			n := min(left, free[node]-used[node])
			if n == 0 {
				continue
			}
			placed[i] = append(placed[i], Share{node, used[node], n})
			used[node] += n
			left -= n
		}
	}
	return placed
}

// chosen returns the nodes from which an owner takes n processors, in their order.
func chosen(free, used []int, n int) []int {
	left := make([]int, len(free))
	best := -1
	for i := range free {
		left[i] = free[i] - used[i]
		if left[i] >= n && (best < 0 || left[i] < left[best]) {
			best = i
		}
	}
	if best >= 0 {
		return []int{best}
	}
	return descending(left)
}

// descending returns the indices of a list, those of the largest numbers first.
func descending(list []int) []int {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(list[b], list[a]) })
	return order
}

// Straddling returns the number of nodes beyond one on which owners are placed, of all owners together: 0
// if each is on a node of its own choice alone.
func Straddling(free, counts []int) int {
	sum := 0
	for _, shares := range Place(free, counts) {
		sum += max(0, len(shares)-1)
	}
	return sum
}
