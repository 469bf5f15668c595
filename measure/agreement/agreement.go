// Package agreement makes the figures of a load agree with each other where some of them are estimates and
// others were measured.
//
// The posterior estimates the metrics of the goal, on the average machine. The times beside them come from the
// windows, and the machine may have been slower then. Without this package, a mean latency of 54 ms stood beside
// 178 infer/s with 5 requests in flight. The package is pure: it measures nothing, and knows no campaign.
package agreement

import (
	"cmp"
	"maps"
	"slices"

	"tuner/measure"
)

// Figures are the values of a load by metric, in base units.
type Figures map[measure.Metric]measure.Estimate

// With returns the figures with estimates of some of them, and with times that agree with these.
//
//   - In a closed loop, the number in flight is the throughput times the mean latency (Little's law). So
//     the mean latency and the server's times are multiplied by Pace. In an open loop the throughput is the
//     clients', and these times stay.
//   - Percentiles move with the latencies that have an estimate, and with the mean: linearly between two
//     of them, and in proportion to the lowest and the highest beyond them. So percentiles keep their order.
func (f Figures) With(estimates Figures, load measure.Load) Figures {
	values := maps.Clone(f)
	anchors := map[string][]anchor{} // by model
	for metric, e := range f {
		if info, _ := metric.Info(); info.Unit != measure.Seconds {
			continue
		}
		model, _ := metric.Split()
		factor := f.Pace(model, estimates, load)
		if _, isPercentile := metric.Quantile(); isPercentile && e.Value > 0 {
			if _, known := anchors[model]; !known {
				anchors[model] = f.anchors(model, estimates, load)
			}
			factor = stretched(e.Value, anchors[model]) / e.Value
		}
		values[metric] = measure.Estimate{Value: e.Value * factor, Lo: e.Lo * factor, Hi: e.Hi * factor}
	}
	maps.Copy(values, estimates)
	return values
}

// Pace returns the factor by which the times of a model change: its throughput over the estimate in a
// closed loop, else 1. "" is the only model of a server.
func (f Figures) Pace(model string, estimates Figures, load measure.Load) float64 {
	metric := measure.Throughput.Of(model)
	from, to := f[metric].Value, estimates[metric].Value
	if load.Of(model).Concurrency > 0 && from > 0 && to > 0 {
		return from / to
	}
	return 1
}

// anchor is a latency in s as the windows have it, and as it becomes.
type anchor struct{ from, to float64 }

// anchors lists the latencies of a model that have an estimate, and the mean, in ascending order.
func (f Figures) anchors(model string, estimates Figures, load measure.Load) []anchor {
	var list []anchor
	average := measure.LatencyAvg.Of(model)
	for metric, e := range f {
		estimate, isEstimated := estimates[metric]
		if metric == average && !isEstimated {
			estimate.Value = e.Value * f.Pace(model, estimates, load)
		}
		m, _ := metric.Split()
		_, isPercentile := metric.Quantile()
		if m == model && (isPercentile || metric == average) && e.Value > 0 && estimate.Value > 0 {
			list = append(list, anchor{e.Value, estimate.Value})
		}
	}
	slices.SortFunc(list, func(a, b anchor) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	return list
}

// stretched returns what becomes of a latency with some anchors; itself without any.
func stretched(latency float64, anchors []anchor) float64 {
	if len(anchors) == 0 {
		return latency
	}
	i := slices.IndexFunc(anchors, func(a anchor) bool { return a.from >= latency })
	switch last := anchors[len(anchors)-1]; {
	case i < 0:
		return latency * last.to / last.from
	case i == 0:
		return latency * anchors[0].to / anchors[0].from
	}
	a, b := anchors[i-1], anchors[i]
	return a.to + (latency-a.from)*(b.to-a.to)/(b.from-a.from)
}
