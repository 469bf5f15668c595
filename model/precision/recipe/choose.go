package recipe

import (
	"errors"
	"fmt"

	"tuner/model/onnx"
	"tuner/model/onnx/rewrite"
)

// Choice has the precisions that are worth a try for a model.
type Choice struct {
	Names []string // the original first, then in the table's order
	Left  []Left   // the others that pay on the processor
}

// Left is a precision that pays on the processor, and is not worth a try for the model.
type Left struct{ Name, Reason string }

// few: a precision that converts less than one of so many layers brings little. If all layers took
// equal time and those became free, the throughput would grow by 1/(1 - 1/10) - 1 = 11 %.
const few = 10

// Choose decides which precisions are worth a try for a model on GPUs or on CPUs. It is the one
// rule for all that the user leaves open: the original, and each precision that pays there, with
// three exceptions. A precision that converts none of the model's nodes is left. One that converts few
// of those that another converts is left, since a search is short. A calibrated one is left if one
// without calibration converts at least half as many nodes: it needs the user's data, its making
// takes minutes, and accuracy suffers more. So convolutional networks get int8_static, transformers
// int8, and networks of both kinds of layers both.
//
// It reads the graph, and converts nothing. Whether a precision is accurate and faster is measured.
func Choose(m *onnx.Model, onGPU bool) Choice {
	var c Choice
	counts, errs := map[string]int{}, map[string]error{}
	largest, plain := "", "" // the precisions that convert most nodes: of all, and of those without calibration
	for _, r := range table {
		if r.Layers == nil || !r.pays(onGPU) {
			continue
		}
		nodes, err := r.Layers(m)
		counts[r.Name], errs[r.Name] = len(nodes), err
		if len(nodes) > counts[largest] {
			largest = r.Name
		}
		if len(nodes) > counts[plain] && !r.Calibrated {
			plain = r.Name
		}
	}
	isFew := func(name string) bool { return few*counts[name] < counts[largest] }
	for _, r := range table {
		switch n := counts[r.Name]; {
		case !r.pays(onGPU):
		case errs[r.Name] != nil:
			c.Left = append(c.Left, Left{r.Name, reasonOf(errs[r.Name])})
		case r.Layers != nil && isFew(r.Name):
			c.Left = append(c.Left, Left{r.Name, fmt.Sprintf("it converts %d of the %d layers that %s converts", n, counts[largest], largest)})
		case r.Calibrated && plain != "" && 2*counts[plain] >= n:
			c.Left = append(c.Left, Left{r.Name, fmt.Sprintf("%s converts %d of its %d layers, and needs no calibration", plain, min(counts[plain], n), n)})
		default:
			c.Names = append(c.Names, r.Name)
		}
	}
	return c
}

// Instead returns the precision that converts most nodes of a model in which another one converts
// none, and their number; "" if none converts any. It names only precisions that pay on processors.
func Instead(m *onnx.Model, of string) (name string, nodes int) {
	for _, r := range table {
		if r.Layers == nil || r.Name == of || !r.pays(false) {
			continue
		}
		if list, err := r.Layers(m); err == nil && len(list) > nodes {
			name, nodes = r.Name, len(list)
		}
	}
	return name, nodes
}

// reasonOf returns the reason why nothing is converted, without the precision's name.
func reasonOf(err error) string {
	var nothing *rewrite.NothingError
	if errors.As(err, &nothing) {
		return nothing.Reason
	}
	return err.Error()
}

// Sentence describes a precision that is left: "int8 is not tried: it has no MatMul".
func (l Left) Sentence() string { return fmt.Sprintf("%s is not tried: %s", l.Name, l.Reason) }
