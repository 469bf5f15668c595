// Package rewrite edits models. It cleans a model, so that every other rewrite starts from the same
// form, and has the editor that writes a new graph beside a clean one. The packages below it convert
// models with it: quantization to 8-bit integers, float16 to 16-bit floats, batch to another batch
// dimension. They stand between the model file and the variants that are served.
//
// All these functions take a model and return a model, without files, clock or randomness. The same
// model always gives the same bytes. A source is never changed. No package here judges its results:
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
type Kept struct {
	Node   string `json:"node"`   // name of the node
	Op     string `json:"op"`     // operator of the node, such as MatMul
	Reason string `json:"reason"` // why it was not converted
}

// KeptOnRequest is the reason for nodes that the caller keeps.
const KeptOnRequest = "kept on request"

// NothingError has the reason why a model has nothing to convert. It wraps ErrNothing.
type NothingError struct{ Target, Reason string }

func (e *NothingError) Error() string {
	return fmt.Sprintf("cannot convert the model to %s: %v: %s", e.Target, ErrNothing, e.Reason)
}

func (e *NothingError) Unwrap() error { return ErrNothing }

// Nothing returns the error of a model in which there is nothing to convert.
func Nothing(target, reason string) error { return &NothingError{target, reason} }

// CheckKeep checks that the nodes to keep exist in the clean model m. A misspelt name would
// otherwise be ignored.
func CheckKeep(m *onnx.Model, target string, keep []string) error {
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

// CheckOpset refuses a model whose operator set is older than least, the first one with the
// operators of the rewrite.
func CheckOpset(m *onnx.Model, target string, least int64) error {
	if got := m.Opset(""); got < least {
		return fmt.Errorf("cannot convert the model to %s: it uses version %d of ONNX's operator set, but the operators of %s need %d or newer; "+
			"export it again with a newer one (torch.onnx.export: opset_version=17) or convert it (onnx.version_converter)", target, got, target, least)
	}
	return nil
}

// IsDefaultDomain reports whether a domain is ONNX's own.
func IsDefaultDomain(domain string) bool { return domain == "" || domain == "ai.onnx" }

// IsOp reports whether a node is that operator of ONNX's own set; false for nil.
func IsOp(node *onnxpb.NodeProto, op string) bool {
	return node.GetOpType() == op && IsDefaultDomain(node.GetDomain())
}

// Operator returns a node's operator with its domain as a prefix, unless that is ONNX's own.
func Operator(node *onnxpb.NodeProto) string {
	if IsDefaultDomain(node.GetDomain()) {
		return node.GetOpType()
	}
	return node.GetDomain() + "." + node.GetOpType()
}
