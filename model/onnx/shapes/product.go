package shapes

import (
	"slices"
	"strings"

	"tuner/model/onnx"
)

// productRule returns the rules of operators that multiply matrices, including recurrent networks.
func productRule(operator string) rule {
	switch operator {
	case "MatMul":
		return func(n node) []Info { return one(n.matrixProduct(n.firstType(0), n.in(0), n.in(1))) }
	case "MatMulInteger":
		return func(n node) []Info { return one(n.matrixProduct(onnx.Int32, n.in(0), n.in(1))) }
	case "QLinearMatMul":
		return func(n node) []Info { return one(n.matrixProduct(n.in(7).Type, n.in(0), n.in(3))) }
	case "com.microsoft.MatMulIntegerToFloat":
		return func(n node) []Info { return one(n.matrixProduct(n.in(2).Type, n.in(0), n.in(1))) }
	case "com.microsoft.DynamicQuantizeMatMul":
		return func(n node) []Info { return one(n.matrixProduct(n.in(0).Type, n.in(0), n.in(1))) }
	case "Gemm":
		return gemm
	case "Einsum":
		return einsum
	case "LSTM", "GRU", "RNN":
		return recurrent
	case "Det":
		return func(n node) []Info {
			x := n.in(0)
			if !x.Ranked || len(x.Shape) < 2 {
				return one(typed(x.Type))
			}
			return one(known(x.Type, x.Shape[:len(x.Shape)-2]))
		}
	default:
		return nil
	}
}

// matrixProduct multiplies like numpy.matmul. The last two dimensions are matrices, and the others
// broadcast. A vector is a row on the left and a column on the right.
func (n node) matrixProduct(t onnx.DataType, a, b Info) Info {
	if !a.Ranked || !b.Ranked || len(a.Shape) == 0 || len(b.Shape) == 0 {
		return typed(t)
	}
	var rows, columns []onnx.Dim
	outerA, outerB := a.Shape[:max(len(a.Shape)-2, 0)], b.Shape[:max(len(b.Shape)-2, 0)]
	if len(a.Shape) > 1 {
		rows = a.Shape[len(a.Shape)-2 : len(a.Shape)-1]
	}
	if len(b.Shape) > 1 {
		columns = b.Shape[len(b.Shape)-1:]
	}
	return known(t, slices.Concat(broadcast(outerA, outerB), rows, columns))
}

func gemm(n node) []Info {
	a, b := n.in(0), n.in(1)
	shape := openDims(2)
	if len(a.Shape) == 2 {
		shape[0] = a.Shape[0]
		if n.integer("transA", 0) != 0 {
			shape[0] = a.Shape[1]
		}
	}
	if len(b.Shape) == 2 {
		shape[1] = b.Shape[1]
		if n.integer("transB", 0) != 0 {
			shape[1] = b.Shape[0]
		}
	}
	return one(known(n.firstType(0), shape))
}

// einsum reads an equation without "…". Its letters name the dimensions.
func einsum(n node) []Info {
	t := n.firstType(0)
	left, right, explicit := strings.Cut(strings.ReplaceAll(n.text("equation"), " ", ""), "->")
	terms := strings.Split(left, ",")
	if !explicit || strings.Contains(left, ".") || len(terms) != len(n.GetInput()) {
		return one(typed(t))
	}
	sizes := map[rune]onnx.Dim{}
	for i, term := range terms {
		x := n.in(i)
		if !x.Ranked || len(x.Shape) != len(term) {
			continue
		}
		for k, letter := range term {
			if d, ok := sizes[letter]; ok {
				sizes[letter] = stretch(d, x.Shape[k]) // a 1 is broadcast
			} else {
				sizes[letter] = x.Shape[k]
			}
		}
	}
	if len(right) > maxRank {
		return one(typed(t))
	}
	var shape []onnx.Dim
	for _, letter := range right {
		d, ok := sizes[letter]
		if !ok {
			d = open()
		}
		shape = append(shape, d)
	}
	return one(known(t, shape))
}

// recurrent returns all hidden states, [sequence, directions, batch, hidden] by default, the last
// hidden state, and for LSTM the last cell.
func recurrent(n node) []Info {
	x, recurrence := n.in(0), n.in(2)
	directions := onnx.Fixed(1)
	if n.text("direction") == "bidirectional" {
		directions = onnx.Fixed(2)
	}
	hidden := sized(n.integer("hidden_size", -1))
	if len(recurrence.Shape) == 3 && isOpen(hidden) {
		hidden = recurrence.Shape[2]
	}
	sequence, batch := open(), open()
	batchFirst := n.integer("layout", 0) != 0
	if len(x.Shape) == 3 {
		sequence, batch = x.Shape[0], x.Shape[1]
		if batchFirst {
			sequence, batch = batch, sequence
		}
	}
	all := []onnx.Dim{sequence, directions, batch, hidden}
	last := []onnx.Dim{directions, batch, hidden}
	if batchFirst {
		all = []onnx.Dim{batch, sequence, directions, hidden}
		last = []onnx.Dim{batch, directions, hidden}
	}
	return []Info{known(x.Type, all), known(x.Type, last), known(x.Type, last)}
}
