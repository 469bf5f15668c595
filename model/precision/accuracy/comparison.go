package accuracy

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"tuner/measure/stats"
	"tuner/model/dataset/elements"
	"tuner/model/onnx/inputs"
)

// relativeFloor is the share of a row's largest element below which relative errors are computed
// from that share (Figures.MaxRel).
const relativeFloor = 0.01

// topFew is the number of largest elements that Figures.Top5 compares.
const topFew = 5

// comparison collects one output's figures batch by batch.
type comparison struct {
	rows               int
	cosines            []float64
	count              int // number of elements that are finite on both sides
	maxAbs, sumAbs     float64
	maxRel, sumRel     float64
	nonFinite          int // only in the variant
	nonFiniteOriginal  int
	sameTop1, sameTop5 int // rows; elements
	top5Rows           int
	compared           int  // rows with a class, for sameTop1
	unitRows           int  // rows with a class whose elements form a vector of length 1
	negative           bool // one of these rows has a negative element
	vectors            [2][][]float64
}

// addBatch adds a batch of both sides.
func (c *comparison) addBatch(a, b inputs.Tensor) error {
	if !slices.Equal(a.Shape, b.Shape) {
		return fmt.Errorf("its shape is %v, the original's %v", b.Shape, a.Shape)
	}
	rows := rowCount(a)
	if rows == 0 {
		return nil
	}
	switch {
	case a.Type.IsFloat() && b.Type.IsFloat():
		c.addFloats(elements.Floats(a), elements.Floats(b), rows, isMatrix(a.Shape))
	case a.Type == b.Type:
		c.addExact(a, b, rows)
	default:
		return fmt.Errorf("its type is %s, the original's %s", b.Type, a.Type)
	}
	c.rows += rows
	return nil
}

// rowCount returns the number of rows of an output: one if it has no dimensions.
func rowCount(t inputs.Tensor) int {
	if len(t.Shape) == 0 {
		return 1
	}
	return int(t.Shape[0])
}

// isMatrix reports whether a shape is rows × columns, ignoring trailing dimensions of size 1: image
// classifiers may end in [rows, 1000, 1, 1].
func isMatrix(shape []int64) bool {
	for len(shape) > 2 && shape[len(shape)-1] == 1 {
		shape = shape[:len(shape)-1]
	}
	return len(shape) == 2 && shape[1] > 1
}

// addExact compares rows of a type whose values are either equal or not.
func (c *comparison) addExact(a, b inputs.Tensor, rows int) {
	width, texts := len(a.Data)/rows, len(a.Strings)/rows
	for i := range rows {
		same := bytes.Equal(a.Data[i*width:(i+1)*width], b.Data[i*width:(i+1)*width]) &&
			slices.EqualFunc(a.Strings[i*texts:(i+1)*texts], b.Strings[i*texts:(i+1)*texts], bytes.Equal)
		if same {
			c.sameTop1++
		}
		c.compared++
	}
}

// addFloats compares rows of numbers.
func (c *comparison) addFloats(a, b []float64, rows int, matrix bool) {
	width := len(a) / rows
	for i := range rows {
		x, y := a[i*width:(i+1)*width], b[i*width:(i+1)*width]
		c.addRow(x, y)
		if matrix && isFinite(slices.Max(x)) { // excludes NaN too, which Max returns
			c.addClasses(x, y)
			if len(c.vectors[0]) < neighbourRows(width) {
				c.vectors[0], c.vectors[1] = append(c.vectors[0], x), append(c.vectors[1], y)
			}
		}
	}
}

// addRow compares the elements of a row.
func (c *comparison) addRow(a, b []float64) {
	scale := 0.0
	for _, v := range a {
		if isFinite(v) {
			scale = max(scale, math.Abs(v))
		}
	}
	var ab, aa, bb float64
	before := c.count
	for i, x := range a {
		y := b[i]
		if !isFinite(x) {
			c.nonFiniteOriginal++
			continue
		}
		if !isFinite(y) {
			c.nonFinite++
			continue
		}
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
		difference, relative := math.Abs(x-y), 0.0
		switch {
		case difference == 0:
		case scale == 0:
			relative = 1
		default:
			relative = difference / max(math.Abs(x), relativeFloor*scale)
		}
		c.maxAbs, c.sumAbs = max(c.maxAbs, difference), c.sumAbs+difference
		c.maxRel, c.sumRel = max(c.maxRel, relative), c.sumRel+relative
		c.count++
	}
	if len(a) > 1 && c.count > before { // a row without finite numbers has no cosine
		c.cosines = append(c.cosines, cosine(ab, aa, bb))
	}
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// cosine returns the cosine similarity from the products a·b, a·a and b·b. For equal rows it is
// exactly 1.
func cosine(ab, aa, bb float64) float64 {
	switch {
	case ab == aa && aa == bb && isFinite(aa):
		return 1
	case aa == 0 || bb == 0:
		return 0
	default:
		return max(-1, min(1, ab/math.Sqrt(aa)/math.Sqrt(bb))) // rounding can exceed the range
	}
}

// addClasses compares a row's classes.
func (c *comparison) addClasses(a, b []float64) {
	x, y := greatest(a, topFew), greatest(b, topFew)
	c.compared++
	if x[0] == y[0] {
		c.sameTop1++
	}
	if len(a) > topFew {
		for _, i := range x {
			if slices.Contains(y, i) {
				c.sameTop5++
			}
		}
		c.top5Rows++
	}
	c.addLength(a)
}

// addLength updates the properties that identify an embedding (Figures.Top1).
func (c *comparison) addLength(row []float64) {
	const tolerance = 1e-2 // allows for half precision
	if math.Abs(dot(row, row)-1) <= tolerance {
		c.unitRows++
	}
	c.negative = c.negative || slices.Min(row) < 0
}

// isEmbedding reports whether all rows have length 1 and some number is negative. Scores of classes
// never have both.
func (c *comparison) isEmbedding() bool { return c.negative && c.unitRows == c.compared }

// greatest returns the positions of the k largest elements, in descending order, the first of equal
// ones first. NaN is less than every number.
func greatest(values []float64, k int) []int {
	places := make([]int, 0, k+1)
	for i, v := range values {
		at := len(places)
		for at > 0 && (v > values[places[at-1]] || math.IsNaN(values[places[at-1]]) && !math.IsNaN(v)) {
			at--
		}
		if at < k {
			places = slices.Insert(places, at, i)[:min(len(places)+1, k)]
		}
	}
	return places
}

// figures returns the figures of all batches. With labels, every output may have classes.
func (c *comparison) figures(labelled bool) Figures {
	f := Figures{NonFinite: c.nonFinite, NonFiniteOriginal: c.nonFiniteOriginal, MaxAbs: math.NaN(), MaxRel: math.NaN(), CosineMin: math.NaN()}
	slices.Sort(c.cosines)
	if len(c.cosines) > 0 {
		f.CosineMin = c.cosines[0]
	}
	if c.count > 0 {
		f.MaxAbs, f.MaxRel = c.maxAbs, c.maxRel
	}
	sum := 0.0
	for _, v := range c.cosines {
		sum += v
	}
	f.CosineMean, f.CosineP1 = ratio(sum, len(c.cosines)), stats.Quantile(c.cosines, 0.01)
	f.MeanAbs, f.MeanRel = ratio(c.sumAbs, c.count), ratio(c.sumRel, c.count)
	f.Top1, f.Top5 = ratio(float64(c.sameTop1), c.compared), ratio(float64(c.sameTop5), topFew*c.top5Rows)
	if c.isEmbedding() && !labelled {
		f.Top1, f.Top5 = math.NaN(), math.NaN()
	}
	f.Neighbour = neighbours(c.vectors[0], c.vectors[1])
	return f
}

// ratio returns the mean of n values from their sum; NaN for no values.
func ratio(sum float64, n int) float64 {
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}
