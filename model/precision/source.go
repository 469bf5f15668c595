package precision

import (
	"fmt"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/ort/addon"
)

// CheckSource returns the reason why a model cannot have variants, from the file alone, as a
// *SourceError. libraries may have operators of the model.
func CheckSource(m *onnx.Model, libraries addon.Libraries) error {
	if err := checkSource(m, libraries); err != nil {
		return &SourceError{Path: m.Path(), Err: err}
	}
	return nil
}

func checkSource(m *onnx.Model, libraries addon.Libraries) error {
	if op := CustomOperator(m); op != "" && len(libraries.Operators) == 0 {
		return fmt.Errorf("it uses the custom operator %s, which only a library of its own can run; "+
			"name the library with --op-library or in op_libraries, or export the model with ONNX's operators alone "+
			"(a custom operator may be defined as a function inside the model)", op)
	}
	for _, side := range []struct {
		name   string
		values []onnx.Value
	}{{"input", m.Inputs()}, {"output", m.Outputs()}} {
		for _, v := range side.values {
			if !v.Ranked {
				return fmt.Errorf("its %s %s has no shape, not even a number of dimensions; "+
					"export the model with a fixed rank (sizes may stay open), or add it with onnx.shape_inference", side.name, v)
			}
		}
	}
	return nil
}

// knownDomains are the domains whose operators ONNX Runtime has.
var knownDomains = []string{
	"", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "ai.onnx.preview.training",
	"com.microsoft", "com.microsoft.nchwc", "com.microsoft.experimental", "com.ms.internal.nhwc", "org.pytorch.aten",
}

// CustomOperator returns the first operator that neither ONNX Runtime nor the model defines, as
// "domain:name (node …)"; "" without one.
func CustomOperator(m *onnx.Model) string {
	p := m.Proto()
	isKnown := map[string]bool{}
	for _, domain := range knownDomains {
		isKnown[domain] = true
	}
	for _, f := range p.GetFunctions() {
		isKnown[f.GetDomain()] = true
	}
	return customIn(p.GetGraph(), isKnown)
}

func customIn(g *onnxpb.GraphProto, isKnown map[string]bool) string {
	for _, node := range g.GetNode() {
		if !isKnown[node.GetDomain()] {
			return fmt.Sprintf("%s:%s (node %q)", node.GetDomain(), node.GetOpType(), node.GetName())
		}
		for _, sub := range onnx.Subgraphs(node) {
			if op := customIn(sub, isKnown); op != "" {
				return op
			}
		}
	}
	return ""
}
