package rewritetest

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"tuner/model/onnx"
)

// Digest returns the digest of a model.
func Digest(t testing.TB, m *onnx.Model) string {
	t.Helper()
	d, err := m.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Floats returns the values of an initializer.
func Floats(t testing.TB, m *onnx.Model, name string) []float32 {
	t.Helper()
	tensor := m.Initializer(name)
	if tensor == nil {
		t.Fatalf("there is no initializer %q", name)
	}
	raw, err := m.Data(tensor)
	if err != nil {
		t.Fatal(err)
	}
	var values []float32
	for ; len(raw) > 0; raw = raw[4:] {
		values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	}
	return values
}

// Operators lists the nodes' operators in order.
func Operators(m *onnx.Model) []string {
	var list []string
	for _, node := range m.Nodes() {
		list = append(list, node.GetOpType())
	}
	return list
}

// Wiring returns the nodes of a graph in the form "y = Op(a, b)".
func Wiring(m *onnx.Model) []string {
	var lines []string
	for _, n := range m.Nodes() {
		lines = append(lines, strings.Join(n.GetOutput(), ", ")+" = "+n.GetOpType()+"("+strings.Join(n.GetInput(), ", ")+")")
	}
	return lines
}

// Interfaces returns inputs and outputs with their types.
func Interfaces(m *onnx.Model) []string {
	var lines []string
	for _, v := range slices.Concat(m.Inputs(), m.Outputs()) {
		lines = append(lines, v.String())
	}
	return lines
}
