package inputs

import (
	"fmt"

	"tuner/model/onnx"
	"tuner/model/onnx/shapes"
)

// mostGrouped is the largest group of rows that is looked for.
const mostGrouped = 1024

// Groups returns the smallest first dimension of the inputs with which the model's Reshapes work.
// It is 1 for nearly all models. A model that answers four rows with one writes 4 into the target of a
// Reshape. So does a model of a fixed batch whose file leaves the first dimension open. Neither
// answers a single row.
func Groups(m *onnx.Model) Size {
	single := Size{Size: 1}
	for _, v := range m.Inputs() {
		if len(v.Shape) == 0 || v.Shape[0].IsFixed() {
			return single
		}
	}
	for found := single; found.Size <= mostGrouped; {
		misfit, fails := shapes.FindMisfit(m, withFirst(m, found.Size))
		if !fails {
			return found
		}
		found.Size *= misfit.Divisor / divisorOf(misfit.Elements, misfit.Divisor)
		found.Reason = fmt.Sprintf("rows by %d, as the node %q takes them", found.Size, misfit.Node)
	}
	return single
}

// withFirst returns the inputs' shapes with a first dimension.
func withFirst(m *onnx.Model, size int64) map[string][]onnx.Dim {
	given := make(map[string][]onnx.Dim, len(m.Inputs()))
	for _, v := range m.Inputs() {
		given[v.Name] = append([]onnx.Dim{onnx.Fixed(size)}, v.Shape[1:]...)
	}
	return given
}

// divisorOf returns the greatest common divisor of two positive numbers, by Euclid's algorithm.
func divisorOf(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
