package analyze

import (
	"cmp"
	"slices"

	"tuner/measure"
)

// movedWith returns a sample whose times go with estimates of its other figures. The posterior
// estimates the metrics of the goal, on the average machine. The times beside them come from the
// windows, and the machine may have been slower then. Without this, a mean latency of 54 ms stood
// beside 178 infer/s with 5 requests in flight.
//
//   - In a closed loop, the number in flight is the throughput times the mean latency (Little's law). So
//     the mean latency, the server's times and the time of a batch are divided by the factor by which the
//     throughput moved. In an open loop the throughput is the clients', and these times stay.
//   - Percentiles move with the latencies that have an estimate, and with the mean: linearly between two
//     of them, and in proportion to the lowest and the highest beyond them. So percentiles keep their order.
func (s Sample) movedWith(estimates map[measure.Metric]measure.Estimate, load measure.Load) Sample {
	values := make(map[measure.Metric]measure.Estimate, len(s.Values))
	for metric, e := range s.Values {
		if info, _ := metric.Info(); info.Unit == measure.Seconds {
			model, _ := metric.Split()
			factor := s.pace(model, estimates, load)
			if _, isPercentile := metric.Quantile(); isPercentile && e.Value > 0 {
				factor = stretched(e.Value, s.anchors(model, estimates, load)) / e.Value
			}
			e = measure.Estimate{Value: e.Value * factor, Lo: e.Lo * factor, Hi: e.Hi * factor}
		}
		values[metric] = e
	}
	for metric, e := range estimates {
		values[metric] = e
	}
	pace := s.pace("", estimates, load)
	s.BatchTime *= pace
	s.Batches = slices.Clone(s.Batches)
	for i := range s.Batches {
		s.Batches[i].Seconds *= pace
	}
	s.Values = values
	return s
}

// pace returns the factor by which the times of a model move: its throughput over the estimate in a
// closed loop, else 1.
func (s Sample) pace(model string, estimates map[measure.Metric]measure.Estimate, load measure.Load) float64 {
	metric := measure.Throughput.Of(model)
	from, to := s.Values[metric].Value, estimates[metric].Value
	if load.Of(model).Concurrency > 0 && from > 0 && to > 0 {
		return from / to
	}
	return 1
}

// anchor is a latency in s as the windows have it, and as it becomes.
type anchor struct{ from, to float64 }

// anchors lists the latencies of a model that have an estimate, and the mean, in ascending order.
func (s Sample) anchors(model string, estimates map[measure.Metric]measure.Estimate, load measure.Load) []anchor {
	var list []anchor
	average := measure.LatencyAvg.Of(model)
	for metric, e := range s.Values {
		estimate, isEstimated := estimates[metric]
		if metric == average && !isEstimated {
			estimate.Value = e.Value * s.pace(model, estimates, load)
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
