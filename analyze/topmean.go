package analyze

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/profile/journal"
	"tuner/search"
)

// topLoads is the number of loads in the mean of the best throughputs (spec.RankTop3Mean).
const topLoads = 3

// byThroughput returns the goal with throughput as its only objective, with weight 1. A mean of
// throughputs is the score of that objective.
func byThroughput(goal search.Goal) search.Goal {
	goal.Objective = search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}
	return goal
}

// scoredByTopMean sets each configuration's score to the mean of its three highest throughputs
// within the constraints, on log scale. The tutorial of OLive and Model Analyzer ranks that way.
//
// If no configuration has three such loads, the mean takes as many as any configuration has. A
// configuration with fewer loads ranks behind, since its mean covers other loads. Each of two
// servers is treated by itself.
func scoredByTopMean(h journal.Header, configs []Config) []Config {
	first, others := byServer(h, configs)
	return slices.Concat(withTopMeans(h, first), withTopMeans(h, others))
}

// withTopMeans computes scoredByTopMean for one server.
func withTopMeans(h journal.Header, configs []Config) []Config {
	most := 0
	tops := make([][]measure.Estimate, len(configs))
	for i, c := range configs {
		tops[i] = highest(confirmedPoints(h, c.Points))
		most = max(most, len(tops[i]))
	}
	scored := slices.Clone(configs)
	for i := range scored {
		scored[i].Choice = nil // it belongs to another view
		if !scored[i].Satisfies() {
			continue
		}
		if scored[i].Score = meanScore(tops[i], most); isScored(scored[i]) {
			scored[i].MeanOf = most
		}
	}
	return scored
}

// highest returns the highest throughputs within the constraints, one for each load, in descending
// order; at most three.
func highest(points []Point) []measure.Estimate {
	var list []measure.Estimate
	for _, p := range points {
		if e, ok := p.Values[measure.Throughput]; ok && p.Satisfies() {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b measure.Estimate) int { return -cmp.Compare(a.Value, b.Value) })
	return list[:min(topLoads, len(list))]
}

// meanScore returns the logarithm of the mean of n values, with an interval for independent errors
// (delta method).
func meanScore(values []measure.Estimate, n int) measure.Estimate {
	if n == 0 || len(values) < n {
		return measure.Estimate{Value: math.Inf(-1), Lo: math.Inf(-1), Hi: math.Inf(-1)}
	}
	sum, squares := 0.0, 0.0
	for _, e := range values[:n] {
		sum += e.Value
		squares += e.Half() * e.Half()
	}
	score, half := math.Log(sum/float64(n)), math.Sqrt(squares)/sum
	return measure.Estimate{Value: score, Lo: score - half, Hi: score + half}
}
