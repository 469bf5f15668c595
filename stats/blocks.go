package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// clip is how many standard deviations from the rest a value may lie before it counts as if it lay there, and clipSteps how often
// that is repeated.
const (
	clip      = 2.5
	clipSteps = 10
)

// Blocks compares treatments that were measured in turn, round by round: a randomised complete block design on log scale. Each
// value is taken as treatment × round × noise, so all values together say how large the noise is. With few rounds that gives
// intervals several times narrower than pairs for themselves do.
//
// Values far off are drawn in (Huber's winsorized residuals), so that one bad window spoils neither a mean nor the noise.
//
// Source: Montgomery, Design and Analysis of Experiments, §4.1; Huber, Robust Statistics, §7.8.
type Blocks struct {
	logs     [][]float64 // by treatment and round, with what lies far off drawn in
	means    []float64   // of these, by treatment
	rounds   int
	kept     float64 // share of the values that were not drawn in
	variance float64 // of one value's log, treatment and round taken out; 0 when unknown
	freedom  int
}

// NewBlocks takes positive values by treatment and round. Rounds that a treatment lacks are ignored.
func NewBlocks(values [][]float64) Blocks {
	if len(values) == 0 {
		return Blocks{}
	}
	rounds := len(values[0])
	for _, v := range values {
		rounds = min(rounds, len(v))
	}
	b := Blocks{means: make([]float64, len(values)), rounds: rounds, kept: 1, freedom: (len(values) - 1) * (rounds - 1)}
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

// fit finds means and variance, drawing in what lies far off.
func (b *Blocks) fit(logs [][]float64) {
	values := logs
	for range clipSteps {
		b.logs = values
		fitted := additive(values, b.means)
		if b.freedom <= 0 {
			return
		}
		limit := clip * spread(logs, fitted)
		sum, clipped := 0.0, 0
		values = make([][]float64, len(logs))
		for i := range logs {
			for j, x := range logs[i] {
				residual := x - fitted[i][j]
				if math.Abs(residual) > limit {
					residual = math.Copysign(limit, residual)
					clipped++
				}
				sum += residual * residual
				values[i] = append(values[i], fitted[i][j]+residual)
			}
		}
		b.kept = 1 - float64(clipped)/float64(len(logs)*b.rounds)
		b.variance = sum / float64(b.freedom) / (b.kept * b.kept)
		if clipped == 0 {
			return
		}
	}
}

// additive fits logs by the sum of a treatment's and a round's effect, and sets the treatments' means.
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

// spread is a standard deviation of the residuals that outliers do not move: the median of their sizes, made consistent for normal
// noise, and corrected for the degrees of freedom that the fit takes.
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

// Ratio estimates the ratio of treatment i to treatment k, with Student's 95 % interval; without noise to judge by (fewer than two
// rounds) the interval is the ratio alone.
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

// Mean estimates the geometric mean of treatment i over these rounds. Means compare as Ratio says; the interval, Student's from the
// treatment's own values, holds what differs between rounds, too. The zero Estimate of no rounds.
func (b Blocks) Mean(i int) Estimate {
	if b.rounds == 0 {
		return Estimate{}
	}
	log := Mean(b.logs[i])
	half := (log.Hi - log.Value) / b.kept
	return Estimate{math.Exp(log.Value), math.Exp(log.Value - half), math.Exp(log.Value + half)}
}

// Noise returns the variance of one value's log, treatment and round taken out, and the degrees of freedom it stands on; zeros
// when it is unknown.
func (b Blocks) Noise() (variance float64, freedom int) { return b.variance, max(0, b.freedom) }
