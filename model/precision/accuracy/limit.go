package accuracy

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// commandMetric and lossMetric are metrics that do not belong to a single output.
const (
	commandMetric = "command"
	lossMetric    = "top1_accuracy_loss"
)

// Limit limits a metric. A report keeps the limit if its worst output does.
type Limit struct {
	Metric string   `json:"metric"`        // name of the metric, as in --metric
	Min    *float64 `json:"min,omitempty"` // lowest allowed value
	Max    *float64 `json:"max,omitempty"` // highest allowed value
	// the user's command that computes the metric `command`
	Command string `json:"command,omitempty"`
}

// String prints the limit for people: "cosine ≥ 0.99", and for a command "`python score.py` ≥ 0.8".
func (l Limit) String() string {
	metric := strings.ReplaceAll(l.Metric, "_", " ")
	if l.Metric == commandMetric {
		metric = "`" + l.Command + "`"
	}
	var parts []string
	if l.Min != nil {
		parts = append(parts, fmt.Sprintf("%s ≥ %g", metric, *l.Min))
	}
	if l.Max != nil {
		parts = append(parts, fmt.Sprintf("%s ≤ %g", metric, *l.Max))
	}
	return strings.Join(parts, " and ")
}

// Metrics returns the names of the metrics.
func Metrics() []string {
	return []string{"cosine", "max_abs_error", "mean_abs_error", "max_rel_error", "mean_rel_error", "top1_agreement", "top5_agreement",
		"neighbour_agreement", lossMetric, commandMetric}
}

// ofFigures returns the function that reads a metric from an output's figures, and whether higher
// is better. It returns nil for a metric that does not belong to a single output.
func ofFigures(metric string) (of func(Figures) float64, moreIsBetter bool) {
	switch metric {
	case "cosine":
		return func(f Figures) float64 { return f.CosineMean }, true
	case "max_abs_error":
		return func(f Figures) float64 { return f.MaxAbs }, false
	case "mean_abs_error":
		return func(f Figures) float64 { return f.MeanAbs }, false
	case "max_rel_error":
		return func(f Figures) float64 { return f.MaxRel }, false
	case "mean_rel_error":
		return func(f Figures) float64 { return f.MeanRel }, false
	case "top1_agreement":
		return func(f Figures) float64 { return f.Top1 }, true
	case "top5_agreement":
		return func(f Figures) float64 { return f.Top5 }, true
	case "neighbour_agreement":
		return func(f Figures) float64 { return f.Neighbour }, true
	default:
		return nil, false
	}
}

// Validate returns the error in the limit itself.
func (l Limit) Validate() error {
	if !slices.Contains(Metrics(), l.Metric) {
		return fmt.Errorf("the metric %q is unknown; allowed are %q", l.Metric, Metrics())
	}
	isCommand := l.Metric == commandMetric
	_, moreIsBetter := ofFigures(l.Metric)
	var errs []error
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	add(l.Min == nil && l.Max == nil, "the metric %q needs a bound: min or max", l.Metric)
	add(!isCommand && moreIsBetter && l.Max != nil, "more of %q is better: it takes min, not max", l.Metric)
	add(!isCommand && !moreIsBetter && l.Min != nil, "less of %q is better: it takes max, not min", l.Metric)
	add(isCommand && l.Command == "", "the metric command needs the command to run")
	add(!isCommand && l.Command != "", "a command is given, but the metric is %q; use the metric command", l.Metric)
	for _, bound := range []*float64{l.Min, l.Max} {
		add(bound != nil && !isFinite(*bound), "a bound of %q is not a number", l.Metric)
	}
	add(!isCommand && moreIsBetter && l.Min != nil && *l.Min > 1, "%q is at most 1: write 0.99 for 99 %%", l.Metric)
	isError := !isCommand && !moreIsBetter && l.Metric != lossMetric // of which a variant may have less than none
	add(isError && l.Max != nil && *l.Max < 0, "%q is at least 0", l.Metric)
	add(l.Min != nil && l.Max != nil && *l.Min > *l.Max, "min is greater than max")
	return errors.Join(errs...)
}

// Check returns the value of the worst output, and a text on how it misses the limit ("" if it
// keeps it). A variant with elements that are not finite, but finite in the original, misses every
// limit. If the metric does not apply to any output, the value is NaN and the limit is missed. The
// limit must be valid.
func (l Limit) Check(r Report) (value float64, miss string) {
	for _, name := range slices.Sorted(maps.Keys(r.Outputs)) {
		if n := r.Outputs[name].NonFinite; n > 0 {
			return math.NaN(), fmt.Sprintf("output %q has %d elements that are NaN or infinite where the original's are not", name, n)
		}
	}
	value, where, missing := l.worst(r)
	switch {
	case missing != "":
		return math.NaN(), missing
	case math.IsNaN(value):
		return value, fmt.Sprintf("%s is not a number%s", l.Metric, where)
	case l.Min != nil && value < *l.Min:
		return value, fmt.Sprintf("%s is %.6g, less than %g%s", l.Metric, value, *l.Min, where)
	case l.Max != nil && value > *l.Max:
		return value, fmt.Sprintf("%s is %.6g, more than %g%s", l.Metric, value, *l.Max, where)
	default:
		return value, ""
	}
}

// worst returns the value that counts with its origin, or the reason why it is missing.
func (l Limit) worst(r Report) (value float64, where, missing string) {
	switch {
	case l.Metric == commandMetric && r.Command == nil:
		return 0, "", "the command has not been run"
	case l.Metric == commandMetric:
		return *r.Command, "", ""
	case l.Metric == lossMetric && r.Labels == nil:
		return 0, "", "there are no labels to find " + lossMetric
	case l.Metric == lossMetric:
		return r.Labels.Loss(), fmt.Sprintf(" (output %q)", r.Labels.Output), ""
	}
	of, moreIsBetter := ofFigures(l.Metric)
	found := ""
	for _, name := range slices.Sorted(maps.Keys(r.Outputs)) {
		v := of(r.Outputs[name])
		if math.IsNaN(v) || found != "" && (v < value) != moreIsBetter {
			continue
		}
		value, found = v, name
	}
	if found == "" {
		return 0, "", fmt.Sprintf("no output has the shape that %s needs", l.Metric)
	}
	return value, fmt.Sprintf(" (output %q)", found), ""
}

// Unjudged names the outputs to which the limit's metric cannot apply, in order, for all variants.
// For example, one element per row has no cosine, and whole numbers have no errors. It returns none
// for a metric that does not belong to a single output.
func (l Limit) Unjudged(r Report) []string {
	of, _ := ofFigures(l.Metric)
	if of == nil {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r.Outputs)) {
		// otherwise the variant itself may be the reason
		if f := r.Outputs[name]; f.NonFinite == 0 && math.IsNaN(of(f)) {
			names = append(names, name)
		}
	}
	return names
}

// CheckReference returns the reason why no variant of an original with these outputs can keep the
// limit: its metric applies to none of them. The error names metrics that apply. Labels, one per
// row, may be nil.
func (l Limit) CheckReference(reference Outputs, labels []int64) error {
	self, err := Compare(reference, reference, labels)
	if err != nil {
		return err
	}
	if len(l.Unjudged(self)) < len(self.Outputs) {
		return nil
	}
	others := slices.DeleteFunc(Metrics(), func(metric string) bool {
		other := Limit{Metric: metric}
		return len(other.Unjudged(self)) == len(self.Outputs) || other.NeedsLabels() && labels == nil
	})
	return fmt.Errorf("no output has the metric of the limit %v; set a limit on one of %s", l, strings.Join(others, ", "))
}
