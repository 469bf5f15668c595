package goals

import (
	"testing"

	"tuner/measure"
	"tuner/search"
)

func TestCheckModels(t *testing.T) {
	t.Parallel()
	check := func(metric measure.Metric, want string, models ...string) {
		t.Helper()
		err := CheckModels(search.Goal{Objective: Single(metric)}, models)
		if got := errorText(err); got != want {
			t.Errorf("%s of %v: %q, want %q", metric, models, got, want)
		}
	}
	check("latency_p99", "")
	check("encoder.latency_p99", "encoder.latency_p99 is a metric of one of several models, and the campaign has one: write latency_p99")
	check("scale", "scale is a metric of several models, and the campaign has one")
	check("scale", "", "encoder", "ranker")
	check("memory", "", "encoder", "ranker")
	check("ranker.goodput_5ms", "", "encoder", "ranker")
	check("throughput", "throughput is a metric of one model, and the campaign has several: write encoder.throughput", "encoder", "ranker")
	check("encodr.throughput", "encodr.throughput: the campaign has no model encodr; its models are encoder, ranker", "encoder", "ranker")
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Whoever waits for answers weighs the percentile that each model limits; p99 stands for no limit.
func TestLatenciesOf(t *testing.T) {
	t.Parallel()
	limit := 0.05
	o := LatenciesOf(search.Goal{Objective: Single(measure.Scale), Constraints: []search.Constraint{{Metric: "ranker.latency_p95", Max: &limit}}}, []string{"encoder", "ranker"})
	if len(o.Terms) != 2 || o.Terms[0].Metric != "encoder.latency_p99" || o.Terms[1].Metric != "ranker.latency_p95" {
		t.Errorf("got %+v", o.Terms)
	}
}
