package shapes

import (
	"math"
	"slices"

	"tuner/model/onnx"
)

// known describes a tensor whose shape is known but for open sizes.
func known(t onnx.DataType, shape []onnx.Dim) Info { return Info{t, shape, true} }

// typed describes a tensor of which only the type is known.
func typed(t onnx.DataType) Info { return Info{Type: t} }

// open is a size of which nothing is known.
func open() onnx.Dim { return onnx.Symbol("") }

func isOpen(d onnx.Dim) bool { return !d.IsFixed() && d.Symbol == "" }

// openDims is a shape of which only the number of dimensions is known.
func openDims(rank int) []onnx.Dim { return slices.Repeat([]onnx.Dim{open()}, rank) }

func fixedDims(sizes []int64) []onnx.Dim {
	dims := make([]onnx.Dim, len(sizes))
	for i, size := range sizes {
		dims[i] = onnx.Dim{Size: max(size, -1)}
	}
	return dims
}

// sized is a fixed size, or an open one when the computation of it left the sizes that tensors can have.
func sized(size int64) onnx.Dim {
	if size < 0 || size > math.MaxInt32*int64(math.MaxInt16) {
		return open()
	}
	return onnx.Fixed(size)
}

// same reports whether two sizes are certainly equal.
func same(a, b onnx.Dim) bool { return a == b && !isOpen(a) }

// either returns the size that two values share whose sizes must agree for the model to run: the one that says more.
func either(a, b onnx.Dim) onnx.Dim {
	if a.IsFixed() || isOpen(b) {
		return a
	}
	return b
}

// agree returns what two shapes have in common; ok is false when they differ in the number of dimensions.
func agree(a, b []onnx.Dim) (shape []onnx.Dim, ok bool) {
	if len(a) != len(b) {
		return nil, false
	}
	shape = openDims(len(a))
	for i := range a {
		if same(a[i], b[i]) {
			shape[i] = a[i]
		}
	}
	return shape, true
}

// broadcast joins two shapes by the rule of numpy: from the right, a 1 stretches to the other size.
func broadcast(a, b []onnx.Dim) []onnx.Dim {
	if len(a) < len(b) {
		a, b = b, a
	}
	joined := slices.Clone(a)
	skip := len(a) - len(b)
	for i, d := range b {
		joined[skip+i] = stretch(a[skip+i], d)
	}
	return joined
}

// stretch joins two sizes of a broadcast. Of a symbol and a fixed size other than 1 the symbol can only be 1 or that size.
func stretch(a, b onnx.Dim) onnx.Dim {
	one := onnx.Fixed(1)
	switch {
	case a == one || same(a, b):
		return b
	case b == one:
		return a
	case a.IsFixed():
		return a
	case b.IsFixed():
		return b
	default:
		return open()
	}
}

// multiply is the product of sizes, open unless all are fixed, or all but one are 1.
func multiply(dims ...onnx.Dim) onnx.Dim {
	product := onnx.Fixed(1)
	for _, d := range dims {
		switch {
		case product == onnx.Fixed(1):
			product = d
		case d == onnx.Fixed(1):
		case product.IsFixed() && d.IsFixed():
			size, ok := onnx.Elements([]int64{product.Size, d.Size})
			if !ok {
				return open()
			}
			product = sized(size)
		default:
			product = open()
		}
	}
	return product
}

// sum is the sum of sizes, open unless all are fixed, or all but one are 0.
func sum(dims ...onnx.Dim) onnx.Dim {
	total := onnx.Fixed(0)
	for _, d := range dims {
		switch {
		case total == onnx.Fixed(0):
			total = d
		case d == onnx.Fixed(0):
		case total.IsFixed() && d.IsFixed():
			total = sized(total.Size + d.Size)
		default:
			total = open()
		}
	}
	return total
}

// at resolves an index that may count from the end; ok is false when it lies outside.
func at(index int64, length int) (i int, ok bool) {
	if index < 0 {
		index += int64(length)
	}
	if index < 0 || index >= int64(length) {
		return 0, false
	}
	return int(index), true
}

// positions resolves axes; ok is false when one lies outside.
func positions(axes []int64, rank int) (list []int, ok bool) {
	for _, axis := range axes {
		i, ok := at(axis, rank)
		if !ok {
			return nil, false
		}
		list = append(list, i)
	}
	return list, true
}
