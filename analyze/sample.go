package analyze

import (
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/stats"
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
	for metric, e := range values {
		values[metric] = widened(goal, e, metric, parts)
	}
	withMemory(values, memory)
	var server measure.ServerStats
	for _, w := range pooled.Windows {
		s.Requests += w.Requests
		server.Inferences += w.Server.Inferences
		server.Executions += w.Server.Executions
	}
	s.MeanBatch = server.MeanBatch()
	s.Chances = chances(s.Values, goal)
	s.Score = scoreOf(pooled, s.Values, goal)
	for _, p := range parts {
		if score, ok := goal.Score(p); ok {
			s.TrialScores = append(s.TrialScores, score)
		}
	}
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

// spreadTrials is the number of trials from which their spread says something; Student's interval of two is far too wide.
const spreadTrials = 3

// widened is an estimate from all windows of several trials with an interval that is never narrower than Student's over the
// trials: engine launches, and minutes on a shared machine, differ by more than the windows of one trial do.
func widened(goal search.Goal, e measure.Estimate, metric measure.Metric, parts []measure.Measurement) measure.Estimate {
	if len(parts) < spreadTrials {
		return e
	}
	var values []float64
	for _, p := range parts {
		if v, ok := goal.Value(p, metric); ok {
			values = append(values, v)
		}
	}
	if len(values) < spreadTrials {
		return e
	}
	spread := stats.Mean(values)
	half := (spread.Hi - spread.Lo) / 2
	e.Lo, e.Hi = min(e.Lo, e.Value-half), max(e.Hi, e.Value+half)
	return e
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

// bestPoint returns the point that a configuration is ranked by: the best that satisfies the constraints, else the nearest
// to doing so. A confirmed point goes before the others unless one of them is better beyond both intervals, and refuted ones do
// not count; not so for the default, whose best load is never understated.
func bestPoint(points []Point, isDefault bool) *Point {
	points = unrefuted(points, isDefault)
	best := -1
	for i := range points {
		if best < 0 || isBetterPoint(points[i], points[best]) {
			best = i
		}
	}
	for i := range points {
		if isDefault || best < 0 || points[best].Confirmed || !points[i].Confirmed || len(points[i].Misses) > 0 {
			continue
		}
		if points[best].Score.Lo <= points[i].Score.Hi {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return &points[best]
}

// unrefuted leaves out the points that only the search measured at a higher load than one that is too high on fresh launches; none of the
// default's, whose best is never understated.
func unrefuted(points []Point, isDefault bool) []Point {
	if isDefault {
		return points
	}
	return slices.DeleteFunc(slices.Clone(points), func(p Point) bool {
		return !p.Confirmed && slices.ContainsFunc(points, func(q Point) bool {
			return q.Confirmed && q.Load.BatchSize == p.Load.BatchSize && q.Load.Level() < p.Load.Level() && q.found().IsTooHigh()
		})
	})
}

func isBetterPoint(a, b Point) bool {
	if va, vb := a.Violation(), b.Violation(); va != vb {
		return va < vb
	}
	return a.Score.Value > b.Score.Value
}
