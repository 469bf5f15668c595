package stats

import (
	"math/rand/v2"
	"slices"
)

// Bootstrap returns the percentile interval of a statistic of a steady series by the stationary
// bootstrap. Each round computes the statistic from blocks of the series. Blocks begin anywhere and
// wrap around. Their lengths have a geometric distribution with the mean block (≥ 1), so that most
// neighbours stay neighbours.
//
// The same seed gives the same interval. Without rounds, Lo = Hi = Value. Without values, Bootstrap
// returns the zero Estimate. statistic must neither keep nor change its argument.
//
// Source: Politis and Romano, The Stationary Bootstrap, JASA 89 (1994).
func Bootstrap(series []float64, block float64, rounds int, seed uint64, statistic func([]float64) float64) Estimate {
	if len(series) == 0 {
		return Estimate{}
	}
	value := statistic(series)
	if rounds < 1 {
		return Estimate{value, value, value}
	}
	random := rand.New(rand.NewPCG(seed, 0))
	ends := 1 / max(1, block) // probability that a block ends after a value
	resampled, results := make([]float64, len(series)), make([]float64, rounds)
	for r := range results {
		at := 0
		for i := range resampled {
			if i == 0 || random.Float64() < ends {
				at = random.IntN(len(series))
			}
			resampled[i] = series[at]
			at = (at + 1) % len(series)
		}
		results[r] = statistic(resampled)
	}
	slices.Sort(results)
	return Estimate{value, Quantile(results, tail), Quantile(results, 1-tail)}
}
