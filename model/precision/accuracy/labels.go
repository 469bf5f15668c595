package accuracy

import (
	"errors"
	"maps"
	"slices"

	"tuner/model/dataset/elements"
)

// NeedsLabels reports whether the limit is on a figure that needs labelled rows.
func (l Limit) NeedsLabels() bool { return l.Metric == lossMetric }

// CheckLabels returns the reason why labels cannot be compared with the original's outputs, and nil
// if they match one.
func CheckLabels(reference Outputs, labels []int64) error {
	_, err := judge(reference, reference, labels)
	return err
}

// judge compares the predictions with the labels. If several outputs match, it uses the one for
// which the original is correct most often.
func judge(reference, variant Outputs, labels []int64) (LabelFigures, error) {
	best := LabelFigures{Reference: -1}
	for _, name := range slices.Sorted(maps.Keys(reference[0])) {
		classes, predicted := predict(reference, name)
		if len(predicted) != len(labels) || classes > 0 && (slices.Min(labels) < 0 || slices.Max(labels) >= int64(classes)) {
			continue
		}
		if share := agreement(predicted, labels); share > best.Reference {
			_, others := predict(variant, name)
			best = LabelFigures{Output: name, Rows: len(labels), Reference: share, Variant: agreement(others, labels)}
		}
	}
	if best.Reference < 0 {
		return best, errors.New("the labels fit no output: they need an output of rows × classes, with a row for each label and a class for each label (counted from 0)")
	}
	return best, nil
}

// predict returns the predicted class of each row in an output, and the number of classes. 0 means
// that the output is the class itself. An output of another form has no predictions.
func predict(outputs Outputs, name string) (classes int, predicted []int64) {
	for _, batch := range outputs {
		t := batch[name]
		if whole, ok := elements.Integers(t); ok && len(whole) == rowCount(t) {
			predicted = append(predicted, whole...)
		}
		if t.Type.IsFloat() && isMatrix(t.Shape) {
			classes = int(t.Shape[1])
			for row := range slices.Chunk(elements.Floats(t), classes) {
				predicted = append(predicted, int64(greatest(row, 1)[0]))
			}
		}
	}
	return classes, predicted
}

// agreement returns the share of equal elements.
func agreement(a, b []int64) float64 {
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	return float64(same) / float64(len(a))
}
