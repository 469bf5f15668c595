package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// clip is how many standard deviations from the rest a value may lie before it counts as if it lay there, and clipSteps how often
// that is repeated.
const (
	clip      = 2.5
	clipSteps = 10
)

// Blocks compares treatments that were measured in turn, round by round: a randomised complete block design on log scale. Each
// value is taken as treatment × round × noise. Where the noise of all treatments is alike, all values together say how large it is
// (Ratio): with few rounds that gives intervals several times narrower than pairs for themselves do. Where one may be noisier than
// the others, only its own differences say how well it is known (Paired).
//
// Values far off are drawn in (Huber's winsorized residuals), so that one bad window spoils neither a mean nor the noise.
//
// Source: Montgomery, Design and Analysis of Experiments, §2.5 and §4.1; Huber, Robust Statistics, §7.8.
type Blocks struct {
	logs     [][]float64 // by treatment and round, with what lies far off drawn in
	means    []float64   // of these, by treatment
	kept     []float64   // share of the values that were not drawn in, by treatment
	rounds   int
	variance float64 // of one value's log, treatment and round taken out, if that is the same for all; 0 when unknown
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

// fit finds means and variance, drawing in what lies far off.
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

// drawIn returns the logs with those far from the fit drawn in, and the sum of the squared residuals then.
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

// Ratio estimates the ratio of treatment i to treatment k, with Student's 95 % interval from the noise of all, which must be alike: with
// others the interval covers the truth less often than it says. Without noise to judge by (fewer than two rounds) it is the ratio alone.
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

// Paired estimates the same ratio as Ratio where treatments may be differently noisy: its interval is Student's from the differences of
// these two within the rounds, which have one variance whatever that of the two and of all others.
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

// Mean estimates the geometric mean of treatment i over these rounds. Means compare as Ratio says; the interval, Student's from the
// treatment's own values, holds what differs between rounds, too. The zero Estimate of no rounds.
func (b Blocks) Mean(i int) Estimate {
	if b.rounds == 0 {
		return Estimate{}
	}
	return estimate(b.logs[i], b.kept[i])
}

// leastKept is the least share by which an interval is made longer: where more was drawn in, values do not scatter around a fit.
const leastKept = 0.5

// estimate is the exponential of the mean of logs, with Student's interval, of which a share was kept and the rest drawn in.
func estimate(logs []float64, kept float64) Estimate {
	mean := Mean(logs)
	half := (mean.Hi - mean.Value) / max(kept, leastKept)
	return Estimate{math.Exp(mean.Value), math.Exp(mean.Value - half), math.Exp(mean.Value + half)}
}

// Noise returns the variance of one value's log, treatment and round taken out, and the degrees of freedom it stands on; zeros
// when it is unknown.
func (b Blocks) Noise() (variance float64, freedom int) { return b.variance, max(0, b.freedom) }
