package ensemble

import (
	"maps"
	"slices"
)

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// Need is the part of a graph that a request needs. It is immutable.
type Need struct {
	graph   *Graph
	Steps   []bool // by step: it runs
	Outputs []bool // by tensor: the request asks for it
	waits   []int  // by step: the number of tensors that it reads
	// by step: the number of steps that read its outputs, and one more if the request does
	readers []int
}

// Need finds the part for the given outputs, by their order in Graph.Outputs. nil means all. As in
// Triton, a step that computes none of them, directly or for another step, does not run.
func (g *Graph) Need(wanted []bool) *Need {
	n := &Need{
		graph: g, Steps: make([]bool, len(g.Steps)), Outputs: make([]bool, len(g.Tensors)),
		waits: make([]int, len(g.Steps)), readers: make([]int, len(g.Steps)),
	}
	var queue []int
	visit := func(tensor int) {
		if i := g.producer[tensor]; i >= 0 && !n.Steps[i] {
			n.Steps[i] = true
			queue = append(queue, i)
		}
	}
	for k, t := range g.Outputs {
		if wanted == nil || wanted[k] {
			n.Outputs[t] = true
			visit(t)
		}
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, in := range g.Steps[i].Inputs {
			visit(in.Tensor)
		}
	}
	for i := range g.Steps {
		if n.Steps[i] {
			n.count(i)
		}
	}
	return n
}

// count counts what step i waits for, and who reads its outputs.
func (n *Need) count(i int) {
	seen := map[int]bool{}
	for _, in := range n.graph.Steps[i].Inputs {
		if !seen[in.Tensor] {
			seen[in.Tensor] = true
			n.waits[i]++
		}
	}
	readers, isAnswer := map[int]bool{}, false
	for _, out := range n.graph.Steps[i].Outputs {
		isAnswer = isAnswer || n.Outputs[out.Tensor]
		for _, reader := range n.graph.consumers[out.Tensor] {
			if n.Steps[reader] {
				readers[reader] = true
			}
		}
	}
	n.readers[i] = len(readers)
	if isAnswer {
		n.readers[i]++
	}
}

// Run is the state of one request. Its methods are not safe for concurrent use.
type Run struct {
	need    *Need
	waits   []int // by step: tensors that are not there yet
	readers []int // by step: those that have not read its outputs yet
}

// Begin begins a request, whose inputs are there. It returns the steps that can run.
func (n *Need) Begin() (*Run, []int) {
	r := &Run{need: n, waits: slices.Clone(n.waits), readers: slices.Clone(n.readers)}
	var ready []int
	for _, t := range n.graph.Inputs {
		ready = r.arrived(t, ready)
	}
	return r, ready
}

// arrived appends to ready the steps that waited for the tensor alone.
func (r *Run) arrived(tensor int, ready []int) []int {
	for _, i := range r.need.graph.consumers[tensor] {
		if !r.need.Steps[i] {
			continue
		}
		if r.waits[i]--; r.waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	return ready
}

// Done tells that step i has run. ready are the steps that can run now. free are the steps whose
// outputs nobody reads any more.
func (r *Run) Done(i int) (ready, free []int) {
	for _, out := range r.need.graph.Steps[i].Outputs {
		ready = r.arrived(out.Tensor, ready)
	}
	seen := map[int]bool{}
	for _, in := range r.need.graph.Steps[i].Inputs {
		if p := r.need.graph.producer[in.Tensor]; p >= 0 && !seen[p] {
			seen[p] = true
			if r.readers[p]--; r.readers[p] == 0 {
				free = append(free, p)
			}
		}
	}
	return ready, free
}
