package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// A value further than clip standard deviations from the fit is moved to that distance. clipSteps
// is the number of times that fit and moving are repeated.
const (
	clip      = 2.5
	clipSteps = 10
)

// Blocks compares treatments that were measured in turn, round by round: a randomised complete
// block design on log scale. The model of each value is treatment × round × noise.
//
// There are two kinds of intervals:
//
//   - Ratio takes the noise of all treatments together. With few rounds its intervals are several
//     times narrower than those of pairs. It needs equal noise in all treatments.
//   - Paired takes the differences of the two treatments only. It holds where one treatment is
//     noisier than the others.
//
// Values far off the fit are moved to clip standard deviations from it (Huber's winsorized
// residuals). One bad window spoils neither a mean nor the noise.
//
// Source: Montgomery, Design and Analysis of Experiments, §2.5 and §4.1; Huber, Robust Statistics,
// §7.8.
type Blocks struct {
	logs   [][]float64 // by treatment and round; values far off are moved towards the fit
	means  []float64   // of logs, by treatment
	kept   []float64   // share of the values that were not moved, by treatment
	rounds int
	// variance of the log of one value, without the effects of treatment and round, if it is the
	// same for all; 0: unknown
	variance float64
	freedom  int
}

// NewBlocks takes positive values by treatment and round. It ignores rounds that a treatment lacks.
func NewBlocks(values [][]float64) Blocks {
	if len(values) == 0 {
		return Blocks{}
	}
	rounds := len(values[0])
	for _, v := range values {
		rounds = min(rounds, len(v))
	}
	b := Blocks{means: make([]float64, len(values)), kept: slices.Repeat([]float64{1}, len(values)), rounds: rounds,
		freedom: (len(values) - 1) * (rounds - 1)}
	if rounds == 0 {
		b.freedom = 0
		return b
	}
	logs := make([][]float64, len(values))
	for i, v := range values {
		for _, x := range v[:rounds] {
			logs[i] = append(logs[i], math.Log(x))
		}
	}
	b.fit(logs)
	return b
}

// fit computes means and variance, and moves values far off towards the fit.
func (b *Blocks) fit(logs [][]float64) {
	values := logs
	for range clipSteps {
		b.logs = values
		fitted := additive(values, b.means)
		if b.freedom <= 0 {
			return
		}
		var squares float64
		values, squares = b.drawIn(logs, fitted)
		kept := stat.Mean(b.kept, nil)
		b.variance = squares / float64(b.freedom) / (kept * kept)
		if kept == 1 {
			return
		}
	}
}

// drawIn moves values further than clip standard deviations from the fit to that distance. squares
// is the sum of the squared residuals after that.
func (b *Blocks) drawIn(logs, fitted [][]float64) (values [][]float64, squares float64) {
	limit := clip * spread(logs, fitted)
	values = make([][]float64, len(logs))
	for i := range logs {
		drawn := 0
		for j, x := range logs[i] {
			residual := x - fitted[i][j]
			if math.Abs(residual) > limit {
				residual = math.Copysign(limit, residual)
				drawn++
			}
			squares += residual * residual
			values[i] = append(values[i], fitted[i][j]+residual)
		}
		b.kept[i] = 1 - float64(drawn)/float64(b.rounds)
	}
	return values, squares
}

// additive fits logs by the sum of a treatment's effect and a round's effect. It sets the means of
// the treatments.
func additive(logs [][]float64, means []float64) [][]float64 {
	rounds := make([]float64, len(logs[0]))
	for i, row := range logs {
		means[i] = stat.Mean(row, nil)
		for j, x := range row {
			rounds[j] += x / float64(len(logs))
		}
	}
	grand := stat.Mean(means, nil)
	fitted := make([][]float64, len(logs))
	for i := range logs {
		for j := range rounds {
			fitted[i] = append(fitted[i], means[i]+rounds[j]-grand)
		}
	}
	return fitted
}

// spread returns a standard deviation of the residuals that outliers do not move. It is the median
// of their sizes, made consistent for normal noise, and corrected for the degrees of freedom of the
// fit.
func spread(logs, fitted [][]float64) float64 {
	var sizes []float64
	for i := range logs {
		for j := range logs[i] {
			sizes = append(sizes, math.Abs(logs[i][j]-fitted[i][j]))
		}
	}
	k, n := float64(len(logs)), float64(len(logs[0]))
	const normal = 0.6745 // the median size of a standard normal value
	return Median(sizes) / normal / math.Sqrt((k-1)*(n-1)/(k*n))
}

// Ratio estimates the ratio of treatment i to treatment k. Its interval is Student's 95 % interval
// from the noise of all treatments, which must be equal. With unequal noise the interval covers the
// truth in less than 95 % of the cases. With fewer than two rounds there is no noise: then Lo = Hi
// = Value.
func (b Blocks) Ratio(i, k int) Estimate {
	if b.rounds == 0 {
		return Estimate{}
	}
	log := b.means[i] - b.means[k]
	half := 0.0
	if b.freedom > 0 && i != k {
		half = TQuantile(1-tail, float64(b.freedom)) * math.Sqrt(2*b.variance/float64(b.rounds))
	}
	return Estimate{math.Exp(log), math.Exp(log - half), math.Exp(log + half)}
}

// Paired estimates the same ratio as Ratio where the noise of treatments differs. Its interval is
// Student's, from the differences of these two treatments within the rounds. Those differences have
// one variance, whatever the noise of the other treatments is.
func (b Blocks) Paired(i, k int) Estimate {
	if b.rounds == 0 {
		return Estimate{}
	}
	differences := make([]float64, b.rounds)
	for j := range differences {
		differences[j] = b.logs[i][j] - b.logs[k][j]
	}
	return estimate(differences, min(b.kept[i], b.kept[k]))
}

// Mean estimates the geometric mean of treatment i over all rounds. The ratio of two means is the
// value of Ratio. The interval is Student's from the values of the treatment, so that it includes
// the variation between rounds. Without rounds Mean returns the zero Estimate.
func (b Blocks) Mean(i int) Estimate {
	if b.rounds == 0 {
		return Estimate{}
	}
	return estimate(b.logs[i], b.kept[i])
}

// leastKept bounds the factor by which moved values widen an interval: 1/leastKept. If more than
// half of the values were moved, they do not scatter around a fit.
const leastKept = 0.5

// estimate returns the exponential of the mean of logs, with Student's interval. kept is the share
// of the values that were not moved; the interval grows by its inverse.
func estimate(logs []float64, kept float64) Estimate {
	mean := Mean(logs)
	half := (mean.Hi - mean.Value) / max(kept, leastKept)
	return Estimate{math.Exp(mean.Value), math.Exp(mean.Value - half), math.Exp(mean.Value + half)}
}

// Noise returns the variance of the log of one value, without the effects of treatment and round,
// and its degrees of freedom. It returns zeros when the variance is unknown.
func (b Blocks) Noise() (variance float64, freedom int) { return b.variance, max(0, b.freedom) }
