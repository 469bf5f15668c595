// Package accuracy compares a variant's outputs with the original model's, and judges the figures
// by a limit. It stands between the runs that made the outputs and the decision whether a variant
// may be ranked.
//
// It is pure: it runs no model and reads no files. A figure that does not apply to an output is
// NaN, and never a number that looks good.
package accuracy

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"tuner/model/dataset/elements"
	"tuner/model/onnx/inputs"
)

// Outputs has the outputs of a model, one set per batch in order, for all rows together. The first
// dimension has the rows. An output without dimensions is one row per batch.
type Outputs []map[string]inputs.Tensor

// Figures compares one output. For each row, a has the original's elements and b the variant's.
// Elements that are NaN or infinite on either side are skipped. Figures that do not apply to the
// output are NaN.
type Figures struct {
	// Cosine similarity a·b / (|a| |b|) of the rows: their mean, first percentile (stats.Quantile)
	// and minimum. Two rows of zeros have 1. A row of zeros and another row have 0. It needs
	// floating-point numbers and two elements per row.
	CosineMean, CosineP1, CosineMin float64
	// |a - b| over all elements, in the output's own unit.
	MaxAbs, MeanAbs float64
	// |a - b| / max(|a|, s/100) over all elements, where s is the largest |a| of the row. Without
	// that lower bound, elements near zero would dominate. In a row of zeros every difference
	// counts as 1.
	MaxRel, MeanRel float64
	// Top1 is the share of rows whose largest element (the first of equal ones) has the same
	// position. It needs floating-point outputs of rows × classes with at least two classes. For
	// other types it is the share of equal rows.
	//
	// Embeddings have no Top1 unless there are labels, since the position of their largest element
	// means nothing. They are recognized by rows of length 1 with negative numbers.
	Top1 float64
	// Top5 is the mean share of the original's five largest elements that are among the variant's
	// five. It needs more than five classes.
	Top5 float64
	// Neighbour is the share of rows whose nearest other row, by cosine, is the same, for
	// floating-point outputs of rows × elements with at least 16 rows. At most the first 2,000 rows
	// are compared, and fewer for wide rows: 1,036 for 1,000 elements, 187 for 30,522. Rows of
	// several widths, such as those of inputs of several lengths, have none.
	Neighbour float64
	// NonFinite is the number of elements that are NaN or infinite only in the variant.
	NonFinite int
	// NonFiniteOriginal is the number of elements that are NaN or infinite in the original. They
	// are not judged. The agreements skip rows whose largest element in the original is not finite.
	NonFiniteOriginal int
}

// Agrees reports whether the output equals the original's except for rounding in another order of
// sums. MaxRel may be a hundredth, for numbers of any size, or a millionth if a row is nearly zero.
// Other types must be equal. Outputs without finite numbers agree with nothing.
func (f Figures) Agrees() bool {
	if math.IsNaN(f.MaxAbs) {
		return f.NonFinite+f.NonFiniteOriginal == 0 && (f.Top1 == 1 || math.IsNaN(f.Top1))
	}
	return f.NonFinite == 0 && (f.MaxAbs <= 1e-6 || f.MaxRel <= 1e-2)
}

// CheckFinite returns an error for a floating-point output that has elements, but no finite one:
// nothing can be compared with it. It returns nil if there is no such output.
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
	Output    string  `json:"output"`    // name of the output with the predictions
	Rows      int     `json:"rows"`      // number of rows with a label; 0 in records of earlier versions
	Reference float64 `json:"reference"` // share of these rows, 0 to 1, that the original predicts correctly
	Variant   float64 `json:"variant"`   // share of these rows, 0 to 1, that the variant predicts correctly
}

// Loss returns the original's share of correct rows minus the variant's. It is negative if the
// variant is better. It subtracts numbers of rows, since the difference of two rounded shares can
// miss a limit that is met exactly: 0.95 - 0.94 is more than 0.01.
func (l LabelFigures) Loss() float64 {
	if l.Rows == 0 {
		return l.Reference - l.Variant
	}
	rows := float64(l.Rows)
	return (math.Round(l.Reference*rows) - math.Round(l.Variant*rows)) / rows
}

// Report compares a variant with the original.
type Report struct {
	Rows      int                `json:"rows"`      // number of rows that were compared
	Synthetic bool               `json:"synthetic"` // the inputs were random
	Outputs   map[string]Figures `json:"outputs"`   // figures of each output, by its name
	// predictions compared with labels; nil without labels
	Labels *LabelFigures `json:"labels,omitempty"`
	// number that the user's command printed; nil without a command
	Command *float64 `json:"command,omitempty"`
}

// IsFinite reports whether every finite element of the original is finite in the variant.
func (r Report) IsFinite() bool {
	for _, f := range r.Outputs {
		if f.NonFinite > 0 {
			return false
		}
	}
	return true
}

// LeastCosine returns the lowest mean cosine of all outputs, and false if no output has one.
func (r Report) LeastCosine() (least float64, ok bool) {
	for _, f := range r.Outputs {
		if c := f.CosineMean; !math.IsNaN(c) && (!ok || c < least) {
			least, ok = c, true
		}
	}
	return least, ok
}

// Difference returns the largest absolute error of all outputs, and 0 if all are equal. It is
// infinite if an element is finite only in the original, or if an output of another type differs.
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

// Compare compares a variant's outputs with those of the original. Both must have the same outputs
// in the same batches and shapes. Floating-point types may differ. Labels, one per row, may be nil.
// The caller sets Synthetic, and Command after it has run the user's command.
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
