package analyze

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/profile/journal"
	"tuner/search"
)

// topLoads is how many loads a ranking by the mean of the best throughputs looks at (spec.RankTop3Mean).
const topLoads = 3

// byThroughput is a goal with the objective that a mean of throughputs is the score of: throughput alone, with weight 1 whatever it had.
func byThroughput(goal search.Goal) search.Goal {
	goal.Objective = search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}
	return goal
}

// scoredByTopMean gives each configuration the mean of its three highest throughputs within the constraints as its score, on log scale, as the
// tutorial of OLive and Model Analyzer ranks. Where no configuration has three such loads, the most that any has stand for the three. One with
// fewer ranks behind those that have them: its mean would be of other loads. Of two servers each is looked at by itself.
func scoredByTopMean(h journal.Header, configs []Config) []Config {
	first, others := byServer(h, configs)
	return slices.Concat(withTopMeans(h, first), withTopMeans(h, others))
}

// withTopMeans is scoredByTopMean of one server.
func withTopMeans(h journal.Header, configs []Config) []Config {
	most := 0
	tops := make([][]measure.Estimate, len(configs))
	for i, c := range configs {
		tops[i] = highest(confirmedPoints(h, c.Points))
		most = max(most, len(tops[i]))
	}
	scored := slices.Clone(configs)
	for i := range scored {
		scored[i].Choice = nil // it is of another view
		if !scored[i].Satisfies() {
			continue
		}
		if scored[i].Score = meanScore(tops[i], most); isScored(scored[i]) {
			scored[i].MeanOf = most
		}
	}
	return scored
}

// highest are the throughputs of points within the constraints, the highest first, one for each load; at most three.
func highest(points []Point) []measure.Estimate {
	var list []measure.Estimate
	for _, p := range points {
		if e, ok := p.Values[measure.Throughput]; ok && len(p.Misses) == 0 {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b measure.Estimate) int { return -cmp.Compare(a.Value, b.Value) })
	return list[:min(topLoads, len(list))]
}

// meanScore is the logarithm of the mean of n values, with the interval of independent errors (the delta method).
func meanScore(values []measure.Estimate, n int) measure.Estimate {
	if n == 0 || len(values) < n {
		return measure.Estimate{Value: math.Inf(-1), Lo: math.Inf(-1), Hi: math.Inf(-1)}
	}
	sum, squares := 0.0, 0.0
	for _, e := range values[:n] {
		sum += e.Value
		half := (e.Hi - e.Lo) / 2
		squares += half * half
	}
	score, half := math.Log(sum/float64(n)), math.Sqrt(squares)/sum
	return measure.Estimate{Value: score, Lo: score - half, Hi: score + half}
}
