package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/model/precision/accuracy"
	"tuner/model/precision/recipe"
	"tuner/ort/provider"
	"tuner/search"
	"tuner/spec/document"
	"tuner/spec/goals"
)

// Accuracy configures the comparison of variants with the original model: the data, and the limit
// on differences.
type Accuracy struct {
	// Limit is the limit that a variant must keep. If the file has none, it is DefaultLimit if the
	// space has other precisions than the original, or if the file has the section accuracy.
	// Otherwise it is nil, and nothing is checked.
	Limit       *accuracy.Limit
	Data        string  // file or folder with the inputs of the comparison; "" for synthetic ones
	Calibration string  // inputs for int8_static's ranges; "" for those of Data
	Rows        int     // largest number of rows; 0: all of Data, or precision's own number of synthetic ones
	MaxKept     float64 // share of the operators that may stay in fp32 to keep the limit, 0..1
	Command     string  // command that computes the user's own metric; "" without one
	// CalibrationMethod is CalibrationMinMax, CalibrationPercentile or CalibrationEntropy; "" for
	// package precision's default.
	CalibrationMethod string
	// Unchecked allows options of execution providers that lower the precision although no
	// comparison checks their outputs.
	Unchecked bool
}

// ComparedOn is the file or folder with the inputs of the comparison: that of accuracy.data, or the
// rows of the requests; "" for synthetic ones.
func (p Profile) ComparedOn() string { return cmp.Or(p.Accuracy.Data, p.Inputs.Data) }

// The methods that derive int8_static's ranges from the calibration data.
const (
	CalibrationMinMax     = "minmax"
	CalibrationPercentile = "percentile"
	CalibrationEntropy    = "entropy"
)

// DefaultLimit returns the limit of a profile that names none: a mean cosine of 0.99.
func DefaultLimit() *accuracy.Limit {
	least := 0.99
	return &accuracy.Limit{Metric: "cosine", Min: &least}
}

// uncheckedField is a field of the section, which has the name of the constraint.
const uncheckedField = "unchecked_options"

// isUnchecked reports whether the file with this root allows unchecked options. The space depends
// on it and may come first in the file.
func isUnchecked(v document.Value) bool {
	return v.Child(goals.AccuracyField).Child(uncheckedField).IsTrue()
}

// accuracy reads the section.
func (r profileReader) accuracy(v document.Value) {
	a := &r.p.Accuracy
	v.Mapping([]document.Field{
		{Name: "data", Read: func(v document.Value) { r.file(v, &a.Data) }},
		{Name: "calibration", Read: func(v document.Value) { r.file(v, &a.Calibration) }},
		{Name: "calibration_method", Read: func(v document.Value) {
			setWord(v, &a.CalibrationMethod, []string{CalibrationMinMax, CalibrationPercentile, CalibrationEntropy})
		}},
		{Name: "rows", Read: func(v document.Value) {
			if n, ok := v.Whole(1, 1_000_000); ok {
				a.Rows = int(n)
			}
		}},
		{Name: "max_kept", Read: func(v document.Value) {
			if share, ok := v.Share(); ok {
				a.MaxKept = share
			}
		}},
		{Name: "command", Read: func(v document.Value) {
			if text, ok := v.Text(); ok {
				a.Command = text
			}
		}},
		{Name: uncheckedField, Read: func(v document.Value) {
			if on, ok := v.Flag(); ok {
				a.Unchecked = on
			}
		}},
	}, nil)
}

// accuracyLimit reads the constraint {metric, min | max}.
func (r profileReader) accuracyLimit(v document.Value) {
	var l accuracy.Limit
	bound := func(target **float64) func(document.Value) {
		return func(v document.Value) {
			x, ok := v.Float()
			if !ok {
				v.Fail(document.Error{Problem: "must be a number", Allowed: "0.99, 1e-3"})
				return
			}
			*target = &x
		}
	}
	before := v.Mistakes()
	given := v.Mapping([]document.Field{
		{Name: "metric", Read: func(v document.Value) { setWord(v, &l.Metric, accuracy.Metrics()) }},
		{Name: "min", Read: bound(&l.Min)},
		{Name: "max", Read: bound(&l.Max)},
	}, nil)
	if _, has := given["metric"]; !has && v.Node.Kind == yaml.MappingNode {
		v.Fail(document.Error{Problem: "has no metric", Allowed: strings.Join(accuracy.Metrics(), ", "), Hint: "write accuracy: {metric: cosine, min: 0.99}"})
	}
	if v.Mistakes() == before {
		r.p.Accuracy.Limit = &l
	}
}

// checkAccuracy combines the limit with the user's command. It reports contradictions: a limit that
// limits nothing, and settings of a comparison that compares nothing. A file with settings for the
// comparison wants one.
func (r profileReader) checkAccuracy(given map[string]document.Value) {
	a := &r.p.Accuracy
	if a.Limit != nil {
		a.Limit.Command = a.Command
		if err := a.Limit.Validate(); err != nil {
			given["constraints"].Child(goals.AccuracyField).Fail(document.Error{Problem: err.Error()})
		}
		return
	}
	section, has := given[goals.AccuracyField]
	// the section only turns the comparison off
	if !has || section.Mistakes() > 0 || a.Unchecked && len(section.Node.Content) == 2 {
		return
	}
	switch {
	case a.Command != "":
		section.Child("command").Fail(document.Error{Problem: "is a command, and no constraint uses its number", Hint: "write constraints: {accuracy: {metric: command, min: …}}"})
	case !r.p.hasVariants():
		section.Fail(document.Error{Problem: "has no effect: the space has nothing but the model as given on the cpu provider",
			Hint: fmt.Sprintf("name other precisions (space.precision: [%s]), or remove the section", strings.Join(recipe.Usual(false), ", "))})
	default:
		a.Limit = DefaultLimit()
	}
}

// hasVariants reports whether the space has anything whose outputs may differ from the original
// model's on the cpu provider.
func (p Profile) hasVariants() bool {
	return p.hasOther(search.KnobPrecision, recipe.Original) || p.hasOther(search.KnobExecutionProvider, provider.CPU)
}

// hasOther reports whether a knob of the space has another value than the default.
func (p Profile) hasOther(knob string, usual search.Value) bool {
	k, _ := p.knob(knob)
	return slices.ContainsFunc(k.Values, func(v search.Value) bool { return v != usual })
}
