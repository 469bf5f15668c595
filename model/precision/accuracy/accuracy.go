// Package accuracy compares a variant's outputs with the original model's, and judges the figures by a limit. It stands behind
// the runs that made the outputs and before the decision whether a variant may be ranked. It is pure: it runs no model and reads
// no files; a figure that makes no sense for an output is NaN, never a number that looks good.
package accuracy

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"tuner/model/dataset/elements"
	"tuner/model/onnx/inputs"
)

// Outputs is the outputs of a model, one set per batch in order, together all rows. The first dimension is the rows; an output
// without dimensions is one row per batch.
type Outputs []map[string]inputs.Tensor

// Figures compares one output. For each row, a is the original's elements and b the variant's. Elements that are NaN or
// infinite on either side are left out. What makes no sense for the output is NaN.
type Figures struct {
	// Cosine similarity a·b / (|a| |b|) of the rows: their mean, first percentile (stats.Quantile) and minimum. Two rows of
	// zeros have 1, one of zeros and another have 0. It needs floating-point numbers and two elements per row.
	CosineMean, CosineP1, CosineMin float64
	// |a - b| over all elements, in the output's own unit.
	MaxAbs, MeanAbs float64
	// |a - b| / max(|a|, s/100) over all elements, s being the greatest |a| of the row: without that floor, elements that are
	// all but zero would decide. In a row of zeros every difference counts 1.
	MaxRel, MeanRel float64
	// Top1 is the share of rows whose greatest element (the first of equals) is in the same place, of floating-point outputs of
	// rows × classes, at least two; of other types, the share of rows that are equal. Embeddings have none unless there are labels,
	// since which of their elements is the greatest means nothing: they are told by rows of length 1 with numbers below 0.
	Top1 float64
	// Top5 is the mean share of the original's five greatest elements that are among the variant's five, of more than five
	// classes.
	Top5 float64
	// Neighbour is the share of rows whose nearest other row, by cosine, is the same: of floating-point outputs of rows ×
	// elements, at least 16 rows. Of more than 2,000 rows the first 2,000 are compared, of wide ones fewer: 1,036 of 1,000 elements,
	// 187 of 30,522.
	Neighbour float64
	// NonFinite counts the elements that are NaN or infinite in the variant alone.
	NonFinite int
	// NonFiniteOriginal counts the elements that are NaN or infinite in the original: nothing is judged by them. The agreements leave out
	// rows whose greatest element in the original is not a finite number.
	NonFiniteOriginal int
}

// Agrees reports whether the output is the original's up to the rounding that another order of sums brings: a MaxRel of a hundredth,
// whatever the size of the numbers, or a millionth where a row is next to nothing. Other types are equal. Numbers of which none is finite agree with nothing.
func (f Figures) Agrees() bool {
	if math.IsNaN(f.MaxAbs) {
		return f.NonFinite+f.NonFiniteOriginal == 0 && (f.Top1 == 1 || math.IsNaN(f.Top1))
	}
	return f.NonFinite == 0 && (f.MaxAbs <= 1e-6 || f.MaxRel <= 1e-2)
}

// CheckFinite names an output of floating-point numbers that has elements, none of which is finite: nothing can be compared
// with it. nil when there is no such output.
func CheckFinite(reference Outputs) error {
	for _, name := range slices.Sorted(maps.Keys(reference[0])) {
		elementCount, anyFinite := 0, false
		for _, batch := range reference {
			if t := batch[name]; t.Type.IsFloat() && !anyFinite {
				values := elements.Floats(t)
				elementCount, anyFinite = elementCount+len(values), slices.ContainsFunc(values, isFinite)
			}
		}
		if elementCount > 0 && !anyFinite {
			return fmt.Errorf("all %d elements of output %q are NaN or infinite", elementCount, name)
		}
	}
	return nil
}

// LabelFigures compares the predictions with the labels.
type LabelFigures struct {
	Output    string  `json:"output"`    // the one that is about the labels
	Rows      int     `json:"rows"`      // that have a label; 0 in records of earlier versions
	Reference float64 `json:"reference"` // share of rows that the original predicts rightly
	Variant   float64 `json:"variant"`
}

// Loss returns how much less of the rows the variant predicts rightly; negative when it predicts more. Numbers of rows are subtracted, since
// the difference of two rounded shares can miss a limit that is met exactly: 0.95 - 0.94 is more than 0.01.
func (l LabelFigures) Loss() float64 {
	if l.Rows == 0 {
		return l.Reference - l.Variant
	}
	rows := float64(l.Rows)
	return (math.Round(l.Reference*rows) - math.Round(l.Variant*rows)) / rows
}

// Report compares a variant with the original.
type Report struct {
	Rows      int                `json:"rows"`
	Synthetic bool               `json:"synthetic"` // the inputs were random; set by the caller
	Outputs   map[string]Figures `json:"outputs"`
	Labels    *LabelFigures      `json:"labels,omitempty"`  // nil without labels
	Command   *float64           `json:"command,omitempty"` // what the user's command found; set by the caller
}

// IsFinite reports whether every element that is a number in the original is one in the variant.
func (r Report) IsFinite() bool {
	for _, f := range r.Outputs {
		if f.NonFinite > 0 {
			return false
		}
	}
	return true
}

// LeastCosine returns the least mean cosine of any output; false where no output has one.
func (r Report) LeastCosine() (least float64, ok bool) {
	for _, f := range r.Outputs {
		if c := f.CosineMean; !math.IsNaN(c) && (!ok || c < least) {
			least, ok = c, true
		}
	}
	return least, ok
}

// Difference returns the largest absolute error of any output, 0 where all are equal. It is infinite where an element is finite in
// the original alone, and where an output of another type is not equal.
func (r Report) Difference() float64 {
	largest := 0.0
	for _, f := range r.Outputs {
		switch {
		case f.NonFinite > 0, math.IsNaN(f.MaxAbs) && f.Top1 < 1:
			return math.Inf(1)
		case f.MaxAbs > largest:
			largest = f.MaxAbs
		}
	}
	return largest
}

// Compare compares a variant's outputs with those of the original. They must have the same outputs in the same batches and
// shapes; floating-point types may differ. Labels, one per row, may be nil.
func Compare(reference, variant Outputs, labels []int64) (Report, error) {
	r, err := compare(reference, variant, labels)
	if err != nil {
		return Report{}, fmt.Errorf("cannot compare the outputs: %w", err)
	}
	return r, nil
}

func compare(reference, variant Outputs, labels []int64) (Report, error) {
	if len(reference) != len(variant) || len(reference) == 0 {
		return Report{}, fmt.Errorf("there are %d batches of the original and %d of the variant", len(reference), len(variant))
	}
	report := Report{Outputs: map[string]Figures{}}
	for _, name := range slices.Sorted(maps.Keys(reference[0])) {
		c := &comparison{}
		for i := range reference {
			a, inReference := reference[i][name]
			b, inVariant := variant[i][name]
			if !inReference || !inVariant {
				return Report{}, fmt.Errorf("batch %d lacks the output %q (original: %t, variant: %t)", i, name, inReference, inVariant)
			}
			if err := c.addBatch(a, b); err != nil {
				return Report{}, fmt.Errorf("output %q, batch %d: %w", name, i, err)
			}
		}
		report.Outputs[name] = c.figures(labels != nil)
		report.Rows = max(report.Rows, c.rows)
	}
	if labels != nil {
		figures, err := judge(reference, variant, labels)
		if err != nil {
			return Report{}, err
		}
		report.Labels = &figures
	}
	return report, nil
}
