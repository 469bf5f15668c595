package analyze

import (
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/footprint"
)

// newSample computes all figures from the pooled windows of measurements under a load. The memory comes from
// its estimate; nil: from the measurements.
func newSample(parts []measure.Measurement, load measure.Load, goal search.Goal, memory *footprint.Estimate) Sample {
	pooled := joinMeasurements(parts)
	values := goal.Estimates(pooled, metricsOf(goal, load.Mix))
	for metric, e := range values { // no metric is negative, but the symmetric interval of a mean of few values may be
		e.Lo = max(e.Lo, 0)
		model, of := metric.Split()
		values[metric] = load.Of(model).Bounded(of, e)
	}
	s := Sample{
		Values:   values,
		Misses:   slices.Concat(unscored(values, goal), goal.MissesBy(pooled, values)),
		Windows:  len(pooled.Whole().Windows),
		Launches: countLaunches(parts),
		Errors:   pooled.Errors(),
		Flags:    pooled.Flags(),
		GPUs:     pooled.GPUs(),
	}
	for _, p := range parts {
		s.LaunchTime = max(s.LaunchTime, p.Times.Launch)
	}
	withMemory(values, memory)
	for _, w := range pooled.Windows {
		s.Requests += w.Requests
	}
	for _, w := range pooled.Whole().Windows {
		s.WindowTime += w.Duration
		if slices.ContainsFunc(w.Flags, measure.Flag.IsOfMachine) {
			s.Disturbed++
		}
	}
	s.MeanBatch, s.BatchTime = pooled.Batches()
	s.Batches = pooled.BatchTimes()
	return s
}

// OwnMetrics lists the metrics that every point has of each of several models.
func OwnMetrics() []measure.Metric {
	return []measure.Metric{measure.Throughput, measure.LatencyAvg, measure.LatencyP50, measure.LatencyP90, measure.LatencyP95, measure.LatencyP99,
		measure.QueueTime, measure.ComputeInput, measure.ComputeInfer, measure.ComputeOutput, measure.ErrorRate}
}

// metricsOf lists the metrics of every point: those of the tables, those of each of several models, and
// the goal's others.
func metricsOf(goal search.Goal, mix measure.Mix) []measure.Metric {
	list := measure.Metrics()
	if !mix.IsZero() {
		list = append(list, measure.Scale)
	}
	for _, p := range mix.Parts() {
		for _, m := range OwnMetrics() {
			list = append(list, m.Of(p.Model))
		}
	}
	for _, m := range goal.Metrics() {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

// joinMeasurements joins measurements of one configuration under one load, which have the same
// memory.
func joinMeasurements(parts []measure.Measurement) measure.Measurement {
	var sum measure.Measurement
	for _, p := range parts {
		sum.Windows = append(sum.Windows, p.Windows...)
		sum.Memory = max(sum.Memory, p.Memory)
		sum.Times = sum.Times.Add(p.Times)
		sum.Launch, sum.Scale = p.Launch, p.Scale
	}
	return sum
}

// countLaunches counts the engine processes behind the measurements.
func countLaunches(parts []measure.Measurement) int {
	seen := map[int]bool{}
	for _, p := range parts {
		seen[p.Launch] = true
	}
	return len(seen)
}
