package analyze

import (
	"fmt"
	"slices"
	"strings"

	"tuner/measure"
	"tuner/search"
)

// ObjectiveError means that configurations cannot be ranked: for some metric of the objective,
// every value is unknown or 0.
type ObjectiveError struct {
	Metric measure.Metric
	Have   []measure.Metric // metrics that some configuration has with a value other than 0
}

func (e *ObjectiveError) Error() string {
	have := make([]string, len(e.Have))
	for i, m := range e.Have {
		have[i] = string(m)
	}
	return fmt.Sprintf("the objective's %s is unknown or 0 for every configuration; choose an objective that was measured: %s",
		e.Metric, strings.Join(have, ", "))
}

// checkObjective returns an ObjectiveError if something was measured but a metric of the objective
// has no score at any point.
func checkObjective(configs []Config, goal search.Goal) error {
	has, isMeasured := map[measure.Metric]bool{}, false
	for _, c := range configs {
		for _, p := range c.Points {
			isMeasured = true
			for m, e := range p.Values {
				has[m] = has[m] || e.Value > 0
			}
		}
	}
	for _, t := range goal.Objective.Terms {
		if isMeasured && !has[t.Metric] {
			return &ObjectiveError{t.Metric, slices.DeleteFunc(measure.Metrics(), func(m measure.Metric) bool { return !has[m] })}
		}
	}
	return nil
}

// unscored lists the metrics that leave figures without a score, as misses.
func unscored(values map[measure.Metric]measure.Estimate, goal search.Goal) []search.Miss {
	return goal.Unscored(func(m measure.Metric) (float64, bool) {
		e, ok := values[m]
		return e.Value, ok
	})
}
