// Package rewrite converts models into models that compute the same in other numbers or shapes:
// 8-bit integers, 16-bit floats, another batch dimension. It stands between the model file and the
// variants that are served.
//
// Its functions take a model and return a model, without files, clock or randomness. The same model
// always gives the same bytes. A source is never changed. The package does not judge its results:
// other packages measure whether a variant is accurate and fast enough.
package rewrite

import (
	"errors"
	"fmt"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// ErrNothing means that the rewrite cannot change anything in the model. The text around it has the
// reason.
var ErrNothing = errors.New("there is nothing to rewrite")

// Summary describes a rewrite, in the order of the graph.
type Summary struct {
	Converted []string // node names
	Kept      []Kept
	Notes     []string // remarks about the model for people, in sentences
}

// Kept is a candidate that was not converted.
type Kept struct{ Node, Op, Reason string }

// keptOnRequest is the reason for nodes that the caller keeps.
const keptOnRequest = "kept on request"

func nothing(target, reason string) error {
	return fmt.Errorf("cannot convert the model to %s: %w: %s", target, ErrNothing, reason)
}

// checkKeep checks that the nodes to keep exist in the clean model m. A misspelt name would
// otherwise be ignored.
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
		return fmt.Errorf("cannot convert the model to %s: it has no nodes %q, which should be kept; the summary of a conversion has the names", target, unknown)
	}
	return nil
}

// checkOpset refuses a model whose operator set is older than least, the first one with the
// operators of the rewrite.
func checkOpset(m *onnx.Model, target string, least int64) error {
	if got := m.Opset(""); got < least {
		return fmt.Errorf("cannot convert the model to %s: it uses version %d of ONNX's operator set, but the operators of %s need %d or newer; "+
			"export it again with a newer one (torch.onnx.export: opset_version=17) or convert it (onnx.version_converter)", target, got, target, least)
	}
	return nil
}

// isDefaultDomain reports whether a domain is ONNX's own.
func isDefaultDomain(domain string) bool { return domain == "" || domain == "ai.onnx" }

// isOp reports whether a node is that operator of ONNX's own set; false for nil.
func isOp(node *onnxpb.NodeProto, op string) bool {
	return node.GetOpType() == op && isDefaultDomain(node.GetDomain())
}
