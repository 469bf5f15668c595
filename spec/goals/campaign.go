package goals

import (
	"fmt"
	"slices"
	"strings"

	"tuner/measure"
	"tuner/search"
	"tuner/spec/document"
)

// A file that analyzes a campaign may name metrics of one of several models, by the model's name. Only
// the campaign knows the names, so CheckModels compares them later.

// ObjectiveOfCampaign is Objective for such a file.
func ObjectiveOfCampaign(v document.Value) search.Objective { return objective(v, ofCampaign) }

// WeightsOfCampaign is Weights for such a file.
func WeightsOfCampaign(v document.Value) search.Objective { return weights(v, ofCampaign) }

// ConstraintsOfCampaign is Constraints for such a file.
func ConstraintsOfCampaign(v document.Value, accuracy func(document.Value)) []search.Constraint {
	return constraints(v, accuracy, ofCampaign)
}

// ofCampaign reads a metric of one model, the scale of several models' traffic, or a metric of one of
// them, with its name.
func ofCampaign(v document.Value, others ...string) (measure.Metric, bool) {
	name := v.Node.Value
	if name == string(measure.Scale) {
		return measure.Scale, true
	}
	model, of, found := strings.Cut(name, ".")
	if !found || !search.IsModelName(model) {
		return OfGoal(v, others...)
	}
	for _, m := range []measure.Metric{TagMetric(of), measure.Metric(of), latencyPrefix + measure.Metric(of)} {
		if _, known := m.Info(); known && isPlain(m) && !IsServers(m) && m != measure.ErrorRate {
			return m.Of(model), true
		}
	}
	return OfGoal(v, others...)
}

// CheckModels returns an error if a campaign does not have a metric of a goal. models are the names of
// several models; none for one.
func CheckModels(goal search.Goal, models []string) error {
	for _, m := range goal.Metrics() {
		model, of := m.Split()
		isOfAll := slices.Contains(serverMetrics(), m) || m == measure.Scale
		switch {
		case len(models) == 0 && model != "":
			return fmt.Errorf("%s is a metric of one of several models, and the campaign has one: write %s", m, of)
		case len(models) == 0 && m == measure.Scale:
			return fmt.Errorf("%s is a metric of several models, and the campaign has one", m)
		case len(models) == 0 || isOfAll:
		case model == "":
			return fmt.Errorf("%s is a metric of one model, and the campaign has several: write %s", m, m.Of(models[0]))
		case !slices.Contains(models, model):
			return fmt.Errorf("%s: the campaign has no model %s; its models are %s", m, model, strings.Join(models, ", "))
		}
	}
	return nil
}

// LatenciesOf weighs the latencies of several models alike: of each the percentile that a goal limits
// first, else the 99th.
func LatenciesOf(goal search.Goal, models []string) search.Objective {
	return ofEach(models, func(model string) measure.Metric {
		for _, m := range goal.Metrics() {
			if name, of := m.Split(); name == model {
				if _, isPercentile := m.Quantile(); isPercentile {
					return of
				}
			}
		}
		return measure.LatencyP99
	})
}

// ThroughputsOf weighs the throughputs of several models alike.
func ThroughputsOf(models []string) search.Objective {
	return ofEach(models, func(string) measure.Metric { return measure.Throughput })
}

func ofEach(models []string, metric func(model string) measure.Metric) search.Objective {
	var o search.Objective
	for _, model := range models {
		o.Terms = append(o.Terms, search.Term{Metric: metric(model).Of(model), Weight: 1})
	}
	return o
}
