package shapes

import (
	"math"
	"slices"

	"tuner/model/onnx"
)

// known describes a tensor with a known shape, except for open sizes.
func known(t onnx.DataType, shape []onnx.Dim) Info { return Info{t, shape, true} }

// typed describes a tensor with only a known type.
func typed(t onnx.DataType) Info { return Info{Type: t} }

// open returns an unknown size.
func open() onnx.Dim { return onnx.Symbol("") }

func isOpen(d onnx.Dim) bool { return !d.IsFixed() && d.Symbol == "" }

// openDims returns a shape with only a known number of dimensions.
func openDims(rank int) []onnx.Dim { return slices.Repeat([]onnx.Dim{open()}, rank) }

func fixedDims(sizes []int64) []onnx.Dim {
	dims := make([]onnx.Dim, len(sizes))
	for i, size := range sizes {
		dims[i] = onnx.Dim{Size: max(size, -1)}
	}
	return dims
}

// sized returns a fixed size. It returns an open one if the computed size is no valid tensor size.
func sized(size int64) onnx.Dim {
	if size < 0 || size > math.MaxInt32*int64(math.MaxInt16) {
		return open()
	}
	return onnx.Fixed(size)
}

// same reports whether two sizes are certainly equal.
func same(a, b onnx.Dim) bool { return a == b && !isOpen(a) }

// either returns the more specific of two sizes that must be equal for the model to run.
func either(a, b onnx.Dim) onnx.Dim {
	if a.IsFixed() || isOpen(b) {
		return a
	}
	return b
}

// agree returns the common part of two shapes. ok is false if they differ in the number of
// dimensions.
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

// broadcast combines two shapes by NumPy's rule: from the right, a 1 stretches to the other size.
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

// stretch combines two sizes of a broadcast. If one is a symbol and the other a fixed size other
// than 1, the symbol can only be 1 or that size.
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

// multiply returns the product of sizes. It is open unless all are fixed, or all except one are 1.
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

// sum returns the sum of sizes. It is open unless all are fixed, or all except one are 0.
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

// at resolves an index that may count from the end. ok is false if it lies outside.
func at(index int64, length int) (i int, ok bool) {
	if index < 0 {
		index += int64(length)
	}
	if index < 0 || index >= int64(length) {
		return 0, false
	}
	return int(index), true
}

// positions resolves axes. ok is false if one lies outside.
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
