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
		predicted := predict(reference, name)
		if !slices.EqualFunc(predicted, labels, prediction.allows) {
			continue
		}
		if share := agreement(predicted, labels); share > best.Reference {
			best = LabelFigures{Output: name, Rows: len(labels), Reference: share, Variant: agreement(predict(variant, name), labels)}
		}
	}
	if best.Reference < 0 {
		return best, errors.New("the labels fit no output: they need an output of rows × classes, with a row for each label and a class for each label (counted from 0)")
	}
	return best, nil
}

// prediction is the predicted class of a row.
type prediction struct {
	class   int64
	classes int // number of the row's classes; 0: the output is the class itself
}

// allows reports whether a label may belong to the row.
func (p prediction) allows(label int64) bool {
	return p.classes == 0 || label >= 0 && label < int64(p.classes)
}

// predict returns the predictions of an output's rows. An output of another form has none.
func predict(outputs Outputs, name string) []prediction {
	var predicted []prediction
	for _, batch := range outputs {
		t := batch[name]
		if whole, ok := elements.Integers(t); ok && len(whole) == rowCount(t) {
			for _, class := range whole {
				predicted = append(predicted, prediction{class: class})
			}
		}
		if t.Type.IsFloat() && isMatrix(t.Shape) {
			classes := int(t.Shape[1])
			for row := range slices.Chunk(elements.Floats(t), classes) {
				predicted = append(predicted, prediction{int64(greatest(row, 1)[0]), classes})
			}
		}
	}
	return predicted
}

// agreement returns the share of predictions that equal their labels.
func agreement(predicted []prediction, labels []int64) float64 {
	same := 0
	for i, p := range predicted {
		if p.class == labels[i] {
			same++
		}
	}
	return float64(same) / float64(len(labels))
}
