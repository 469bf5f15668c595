// Package rewrite makes of a model another one that computes the same in other numbers: 8-bit integers, 16-bit floats, another
// batch dimension. It stands between the model file and the variants that are served: functions from model to model, without
// files, clock or randomness, that give the same bytes for the same model every time. A source is never changed. It refuses to
// judge what it makes: whether a variant is accurate and fast enough is measured by those who serve it.
package rewrite

import (
	"errors"
	"fmt"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// ErrNothing says that a model has nothing that the rewrite could change; the text around it says why.
var ErrNothing = errors.New("there is nothing to rewrite")

// Summary says what a rewrite did, in the order of the graph.
type Summary struct {
	Converted []string // names of nodes
	Kept      []Kept
	Notes     []string // what people should know about the model, in sentences
}

// Kept is a candidate that stays as it was.
type Kept struct{ Node, Op, Reason string }

// keptOnRequest is the reason of nodes that the caller wants to stay.
const keptOnRequest = "kept on request"

func nothing(target, reason string) error {
	return fmt.Errorf("cannot convert the model to %s: %w: %s", target, ErrNothing, reason)
}

// checkKeep makes sure that the nodes that shall stay exist in the clean model m: a misspelt name would be converted silently.
func checkKeep(m *onnx.Model, target string, keep []string) error {
	known := map[string]bool{}
	for _, node := range m.Nodes() {
		known[node.GetName()] = true
	}
	var unknown []string
	for _, name := range keep {
		if !known[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("cannot convert the model to %s: it has no nodes %q, which are to be kept; the summary of a conversion has their names", target, unknown)
	}
	return nil
}

// checkOpset refuses a model whose operator set is older than least, the first that has what the rewrite writes.
func checkOpset(m *onnx.Model, target string, least int64) error {
	if got := m.Opset(""); got < least {
		return fmt.Errorf("cannot convert the model to %s: it uses version %d of ONNX's operator set, the operators of %s need %d or newer; "+
			"export it again with a newer one (torch.onnx.export: opset_version=17) or convert it (onnx.version_converter)", target, got, target, least)
	}
	return nil
}

// isDefaultDomain reports whether an operator belongs to ONNX's own set.
func isDefaultDomain(domain string) bool { return domain == "" || domain == "ai.onnx" }

// isOp reports whether a node is that operator of ONNX's own set; false for nil.
func isOp(node *onnxpb.NodeProto, op string) bool {
	return node.GetOpType() == op && isDefaultDomain(node.GetDomain())
}
