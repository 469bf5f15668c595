// Package ensemble knows the graph of an ensemble: a model whose steps are other models. It checks a
// configuration by Triton's rules and in its words, says which steps a request needs, and which of
// them can run when a tensor is there.
//
// Package engine holds the tensors, and runs the models. This package sees neither: tensors and
// steps are numbers here.
package ensemble

import (
	"fmt"
	"maps"
	"slices"

	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Graph is the data flow of an ensemble. It is immutable.
type Graph struct {
	Name    string
	Tensors []string // names of the ensemble's tensors
	Inputs  []int    // tensors of the ensemble's inputs, in the order of the configuration
	Outputs []int    // tensors of its outputs, in the order of their names
	Steps   []Step

	consumers [][]int // by tensor: the steps that read it
	producer  []int   // by tensor: the step that writes it; -1: it is an input
}

// Step is a model in an ensemble.
type Step struct {
	Model   string
	Version int64     // -1: the newest
	Inputs  []Mapping // in the order of their names
	Outputs []Mapping
}

// Mapping connects a model's input or output with a tensor of the ensemble.
type Mapping struct {
	Name   string
	Tensor int
}

// Origin returns the step that writes a tensor, and the name that its model has for it. -1: it is an input.
func (g *Graph) Origin(tensor int) (step int, output string) {
	step = g.producer[tensor]
	if step < 0 {
		return step, ""
	}
	for _, out := range g.Steps[step].Outputs {
		if out.Tensor == tensor {
			return step, out.Name
		}
	}
	return -1, ""
}

// New checks an ensemble's configuration by itself, without its models.
func New(c *modelconfig.Config) (*Graph, error) {
	b := builder{Graph: Graph{Name: c.GetName()}, number: map[string]int{}}
	if len(c.GetEnsembleScheduling().GetStep()) == 0 {
		return nil, fmt.Errorf("must specify 'step' for ensemble '%s'", c.GetName())
	}
	for i, step := range c.GetEnsembleScheduling().GetStep() {
		if err := b.add(i, step); err != nil {
			return nil, err
		}
	}
	if err := b.flow(c); err != nil {
		return nil, err
	}
	return &b.Graph, nil
}

// builder is a graph that is being made.
type builder struct {
	Graph
	number map[string]int // of each tensor
	ready  []bool         // by tensor: there is a way to it from the inputs
}

// tensor returns the number of a tensor, which it makes if it is new.
func (b *builder) tensor(name string) int {
	if n, found := b.number[name]; found {
		return n
	}
	n := len(b.Tensors)
	b.number[name] = n
	b.Tensors = append(b.Tensors, name)
	b.consumers = append(b.consumers, nil)
	b.producer = append(b.producer, -1)
	return n
}

// add adds a step.
func (b *builder) add(i int, from *configpb.ModelEnsembling_Step) error {
	for _, field := range []struct {
		name  string
		empty bool
	}{
		{"model_name", from.GetModelName() == ""}, {"input_map", len(from.GetInputMap()) == 0}, {"output_map", len(from.GetOutputMap()) == 0},
	} {
		if field.empty {
			return fmt.Errorf("must specify '%s' in step %d of ensemble '%s'", field.name, i, b.Name)
		}
	}
	step := Step{Model: from.GetModelName(), Version: from.GetModelVersion()}
	for _, name := range slices.Sorted(maps.Keys(from.GetOutputMap())) {
		t := b.tensor(from.GetOutputMap()[name])
		if b.producer[t] >= 0 {
			return fmt.Errorf("ensemble tensor '%s' can appear in an output map only once for ensemble '%s' step %d", b.Tensors[t], b.Name, i)
		}
		b.producer[t] = i
		step.Outputs = append(step.Outputs, Mapping{name, t})
	}
	for _, name := range slices.Sorted(maps.Keys(from.GetInputMap())) {
		t := b.tensor(from.GetInputMap()[name])
		step.Inputs = append(step.Inputs, Mapping{name, t})
		if c := b.consumers[t]; len(c) == 0 || c[len(c)-1] != i {
			b.consumers[t] = append(c, i)
		}
	}
	b.Steps = append(b.Steps, step)
	return nil
}

// flow finds the inputs and outputs, and checks that every tensor can be computed and is used.
func (b *builder) flow(c *modelconfig.Config) error {
	b.ready = make([]bool, len(b.Tensors))
	isInput := make([]bool, len(b.Tensors))
	for _, in := range c.GetInput() {
		t, found := b.number[in.GetName()]
		if !found {
			return fmt.Errorf("ensemble input '%s' for ensemble %s' is not used", in.GetName(), b.Name)
		}
		if b.producer[t] >= 0 {
			return fmt.Errorf("ensemble input '%s' for ensemble '%s' is written by step %d too", in.GetName(), b.Name, b.producer[t])
		}
		b.Inputs = append(b.Inputs, t)
		b.ready[t], isInput[t] = true, true
	}
	b.spread()
	isOutput := make([]bool, len(b.Tensors))
	for _, out := range c.GetOutput() {
		t, found := b.number[out.GetName()]
		if !found {
			return fmt.Errorf("ensemble output '%s' for ensemble %s' is not used", out.GetName(), b.Name)
		}
		if !b.ready[t] {
			return b.unwritten(t)
		}
		b.Outputs = append(b.Outputs, t)
		isOutput[t] = true
	}
	slices.SortFunc(b.Outputs, func(x, y int) int { return compare(b.Tensors[x], b.Tensors[y]) })
	for t, name := range b.Tensors {
		if !isOutput[t] && (!b.ready[t] || len(b.consumers[t]) == 0) {
			return fmt.Errorf("ensemble tensor '%s' is unused in ensemble '%s'", name, b.Name)
		}
	}
	return nil
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// spread marks the tensors to which there is a way from those that are marked. Each step is looked
// at once for each of its inputs.
func (b *builder) spread() {
	missing := make([]int, len(b.Steps)) // distinct inputs that are not ready
	for _, steps := range b.consumers {
		for _, i := range steps {
			missing[i]++
		}
	}
	var queue []int
	for t, is := range b.ready {
		if is {
			queue = append(queue, t)
		}
	}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		for _, i := range b.consumers[t] {
			if missing[i]--; missing[i] > 0 {
				continue
			}
			for _, out := range b.Steps[i].Outputs {
				if !b.ready[out.Tensor] {
					b.ready[out.Tensor] = true
					queue = append(queue, out.Tensor)
				}
			}
		}
	}
}

// unwritten explains why an output cannot be computed: it follows the tensors that lack to the first
// one.
func (b *builder) unwritten(output int) error {
	last, seen := output, map[int]bool{}
	for next := output; next >= 0; {
		from := next
		next = -1
		if b.producer[from] < 0 {
			break
		}
		for _, in := range b.Steps[b.producer[from]].Inputs {
			if !b.ready[in.Tensor] && !seen[in.Tensor] {
				seen[in.Tensor] = true
				last, next = in.Tensor, in.Tensor
				break
			}
		}
	}
	text := fmt.Sprintf("output '%s' for ensemble '%s' is not written", b.Tensors[output], b.Name)
	if last != output {
		text += fmt.Sprintf(": at least one of its depending tensors, '%s', is not connected", b.Tensors[last])
	}
	return fmt.Errorf("%s", text)
}

// Models lists the models of the steps, each once, in order.
func (g *Graph) Models() []string {
	var names []string
	for i := range g.Steps {
		names = append(names, g.Steps[i].Model)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
