package analyze

import (
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/footprint"
)

// newSample pools the windows of measurements and computes every figure from all of them, but
// for the memory, which is its configuration's; nil: as the measurements tell.
func newSample(parts []measure.Measurement, goal search.Goal, memory *footprint.Estimate) Sample {
	pooled := pool(parts)
	values := goal.Estimates(pooled, metricsOf(goal))
	s := Sample{
		Values:   values,
		Misses:   slices.Concat(unscored(values, goal), goal.MissesBy(pooled, values)),
		Windows:  len(pooled.Windows),
		Launches: countLaunches(parts),
		Errors:   pooled.Errors(),
		Flags:    pooled.Flags(),
		GPUs:     pooled.GPUs(),
	}
	for _, p := range parts {
		s.LaunchTime = max(s.LaunchTime, p.Times.Launch)
	}
	withMemory(values, memory)
	var server measure.ServerStats
	for _, w := range pooled.Windows {
		s.Requests += w.Requests
		server.Inferences += w.Server.Inferences
		server.Executions += w.Server.Executions
	}
	s.MeanBatch = server.MeanBatch()
	s.Score = scoreOf(pooled, s.Values, goal)
	return s
}

// metricsOf lists the metrics that are told of every point: those of tables, and the goal's others.
func metricsOf(goal search.Goal) []measure.Metric {
	list := measure.Metrics()
	for _, m := range goal.Metrics() {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

// pool joins measurements of one configuration under one load, which have one memory.
func pool(parts []measure.Measurement) measure.Measurement {
	var sum measure.Measurement
	for _, p := range parts {
		sum.Windows = append(sum.Windows, p.Windows...)
		sum.Memory = max(sum.Memory, p.Memory)
		sum.Times = sum.Times.Add(p.Times)
		sum.Launch = p.Launch
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

// scoreOf gives the goal's score an interval: the sum of the terms' relative half-widths, each times its weight (the delta method for a sum of
// logarithms that err together). Figures of the same windows are not independent: in a closed loop throughput × mean latency is the concurrency
// (Little's law), so that a busy moment harms both. A measurement without a score ranks below every other.
func scoreOf(m measure.Measurement, values map[measure.Metric]measure.Estimate, goal search.Goal) measure.Estimate {
	score, ok := goal.Score(m)
	if !ok {
		return measure.Estimate{Value: math.Inf(-1), Lo: math.Inf(-1), Hi: math.Inf(-1)}
	}
	half := 0.0
	for _, t := range goal.Objective.Terms {
		if e := values[t.Metric]; e.Value > 0 {
			half += t.Weight * (e.Hi - e.Lo) / 2 / e.Value
		}
	}
	return measure.Estimate{Value: score, Lo: score - half, Hi: score + half}
}
