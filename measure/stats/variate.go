package stats

import "math"

// Variate is a control variate: the effect of a known disturbance x on a value y. An example of x
// is the CPU time that others took. The effect is a straight line. Its slope is learned from data,
// and the effect is then removed (Lavenberg and Welch, Management Science 27, 1981). The zero
// Variate removes nothing.
type Variate struct {
	Slope    float64 // change of y per unit of x
	Variance float64 // variance of the slope's error
	Mean     float64 // the x to which values are moved
}

// slopeDeviation is the prior standard deviation of a slope. For the logarithm of throughput over
// −ln of the CPU time left, the expected slope is 1. Measured slopes were between 1.0 and 1.3
// beside other processes, and 1.9 and 2.6 beside other virtual machines (lab/docs/search.md).
const slopeDeviation = 0.5

// noiseWeight is the weight of an expected noise, in degrees of freedom.
const noiseWeight = 3

// LearnVariate estimates the slope from differences between values of the same group. The prior of
// the slope is normal around usual, with a deviation of 0.5. Mean is the mean of all x. groups, x
// and y have equal lengths.
//
// LearnVariate also learns the variance of a value within its group. noise is the expected
// variance, 0 if none is expected. The slope is usual if x does not vary within groups, or if
// nothing tells the noise. If all x are 0, the Variate removes nothing.
func LearnVariate[G comparable](groups []G, x, y []float64, usual, noise float64) Variate {
	v := Variate{Slope: usual, Variance: slopeDeviation * slopeDeviation}
	if len(x) == 0 {
		return v
	}
	for _, value := range x {
		v.Mean += value / float64(len(x))
	}
	w := within(groups, x, y)
	if w.xx <= 0 {
		return v
	}
	weight := 0.0
	if noise > 0 {
		weight = noiseWeight
	}
	freedom := float64(w.freedom)
	if weight+freedom <= 0 {
		return v
	}
	// The noise depends on the slope, and the slope on the noise. The rounds converge for both,
	// since the sum of squares is flat near the best slope.
	const rounds, prior = 20, slopeDeviation * slopeDeviation
	for range rounds {
		squares := max(0, w.yy-2*v.Slope*w.xy+v.Slope*v.Slope*w.xx)
		variance := (weight*noise + squares) / (weight + freedom)
		if variance <= 0 { // a line without noise: least squares is exact
			return Variate{w.xy / w.xx, 0, v.Mean}
		}
		v.Slope = (variance*usual + prior*w.xy) / (variance + prior*w.xx)
		v.Variance = variance * prior / (variance + prior*w.xx)
	}
	return v
}

// Part returns the effect of x on a value, relative to the mean of x. y − Part(x) is the value at
// the mean of x.
func (v Variate) Part(x float64) float64 { return v.Slope * (x - v.Mean) }

// Doubt returns the variance that the removal of Part adds to a value. It comes from the error of
// the slope.
func (v Variate) Doubt(x float64) float64 { return v.Variance * (x - v.Mean) * (x - v.Mean) }

// At returns the Variate that moves values to another x, such as 0 for no disturbance.
func (v Variate) At(x float64) Variate { return Variate{v.Slope, v.Variance, x} }

// Widen widens an interval on a ratio scale by a variance of the logarithm that it does not include
// yet. Its ends move apart as those of a normal 95 % interval whose variance grows. An estimate
// without an interval stays as it is.
func Widen(e Estimate, variance float64) Estimate {
	if variance <= 0 || !(e.Value > 0) {
		return e
	}
	add := Half95 * math.Sqrt(variance)
	if e.Lo > 0 {
		e.Lo = e.Value * math.Exp(-math.Hypot(math.Log(e.Value/e.Lo), add))
	}
	if e.Hi >= e.Value {
		e.Hi = e.Value * math.Exp(math.Hypot(math.Log(e.Hi/e.Value), add))
	}
	return e
}
