package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/model/precision/accuracy"
	"tuner/model/precision/recipe"
	"tuner/ort/provider"
	"tuner/search"
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

// accuracyField is the name of the section and of the constraint. uncheckedField is a field of the
// section.
const (
	accuracyField  = "accuracy"
	uncheckedField = "unchecked_options"
)

// isUnchecked reports whether the file with this root allows unchecked options. The space depends
// on it and may come first in the file.
func (v value) isUnchecked() bool { return v.child(accuracyField).child(uncheckedField).isTrue() }

// accuracy reads the section.
func (r profileReader) accuracy(v value) {
	a := &r.p.Accuracy
	v.mapping([]field{
		{"data", func(v value) { r.file(v, &a.Data) }},
		{"calibration", func(v value) { r.file(v, &a.Calibration) }},
		{"calibration_method", func(v value) {
			setWord(v, &a.CalibrationMethod, []string{CalibrationMinMax, CalibrationPercentile, CalibrationEntropy})
		}},
		{"rows", func(v value) {
			if n, ok := v.whole(1, 1_000_000); ok {
				a.Rows = int(n)
			}
		}},
		{"max_kept", func(v value) {
			if share, ok := v.share(); ok {
				a.MaxKept = share
			}
		}},
		{"command", func(v value) {
			if text, ok := v.text(); ok {
				a.Command = text
			}
		}},
		{uncheckedField, func(v value) {
			if on, ok := v.flag(); ok {
				a.Unchecked = on
			}
		}},
	}, nil)
}

// accuracyLimit reads the constraint {metric, min | max}.
func (r profileReader) accuracyLimit(v value) {
	var l accuracy.Limit
	bound := func(target **float64) func(value) {
		return func(v value) {
			x, ok := v.float()
			if !ok {
				v.fail(Error{Problem: "must be a number", Allowed: "0.99, 1e-3"})
				return
			}
			*target = &x
		}
	}
	before := len(v.doc.errors)
	given := v.mapping([]field{
		{"metric", func(v value) { setWord(v, &l.Metric, accuracy.Metrics()) }},
		{"min", bound(&l.Min)},
		{"max", bound(&l.Max)},
	}, nil)
	if _, has := given["metric"]; !has && v.node.Kind == yaml.MappingNode {
		v.fail(Error{Problem: "has no metric", Allowed: strings.Join(accuracy.Metrics(), ", "), Hint: "write accuracy: {metric: cosine, min: 0.99}"})
	}
	if len(v.doc.errors) == before {
		r.p.Accuracy.Limit = &l
	}
}

// share reads a share: 25%, or 0.25.
func (v value) share() (float64, bool) {
	x, ok := v.float()
	if text, percent := strings.CutSuffix(v.node.Value, "%"); percent && v.node.Kind == yaml.ScalarNode {
		number, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		x, ok = number/100, err == nil
	}
	if !ok || !(x >= 0 && x <= 1) { // excludes NaN too
		e := Error{Problem: "is not a share", Allowed: "0% to 100%, or 0 to 1"}
		if bare, isBare := v.float(); isBare && bare > 1 && bare <= 100 {
			e.Hint = fmt.Sprintf("write %s%%", v.node.Value)
		}
		v.fail(e)
		return 0, false
	}
	return x, true
}

// openShare reads a share above 0% and below 100%. why explains in an error why the ends are not
// allowed.
func (v value) openShare(why string) (float64, bool) {
	x, ok := v.share()
	if ok && (x == 0 || x == 1) {
		v.fail(Error{Problem: "must be above 0 and below 1: " + why, Allowed: "a share: 2%, 0.02"})
		return 0, false
	}
	return x, ok
}

// checkAccuracy combines the limit with the user's command. It reports contradictions: a limit that
// limits nothing, and settings of a comparison that compares nothing. A file with settings for the
// comparison wants one.
func (r profileReader) checkAccuracy(given map[string]value) {
	a := &r.p.Accuracy
	if a.Limit != nil {
		a.Limit.Command = a.Command
		if err := a.Limit.Validate(); err != nil {
			given["constraints"].child(accuracyField).fail(Error{Problem: err.Error()})
		}
		return
	}
	section, has := given[accuracyField]
	// the section only turns the comparison off
	if !has || len(section.doc.errors) > 0 || a.Unchecked && len(section.node.Content) == 2 {
		return
	}
	switch {
	case a.Command != "":
		section.child("command").fail(Error{Problem: "is a command, and no constraint uses its number", Hint: "write constraints: {accuracy: {metric: command, min: …}}"})
	case !r.p.hasVariants():
		section.fail(Error{Problem: "has no effect: the space has nothing but the model as given on the cpu provider",
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
