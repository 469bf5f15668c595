package stats

import "math"

// Variate is a control variate: what a known disturbance x, such as the CPU time that others took, does to a value y. It is a
// straight line, of which the slope is learned and the rest is taken out (Lavenberg and Welch, Management Science 27, 1981).
// The zero Variate takes nothing out.
type Variate struct {
	Slope    float64 // change of y with one unit of x
	Variance float64 // of the slope's error
	Mean     float64 // of x: what values are moved to
}

// slopeDeviation is the standard deviation of what is believed of a slope before anything is seen. Slopes of the logarithm of
// throughput over −ln of the CPU time left, of which 1 is expected, were between 1.0 and 1.3 beside other processes, and 1.9
// and 2.6 beside other virtual machines (lab/docs/search.md).
const slopeDeviation = 0.5

// noiseWeight is how many degrees of freedom a noise that is expected counts for.
const noiseWeight = 3

// LearnVariate finds the slope by what values of the same group differ by, where it is normal around a usual one with a
// deviation of 0.5, and the mean of all x. The variance of a value within its group is learned, too; noise is what is expected
// of it, or 0 where nothing is. groups, x and y are equally long. Where x does not vary within groups, or nothing tells the
// noise, the slope is the usual one. Where all x are 0, nothing is taken out of any value.
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
	// The noise depends on the slope and the slope on the noise. The rounds settle both, since the sum of squares is flat
	// about the best slope.
	const rounds, prior = 20, slopeDeviation * slopeDeviation
	for range rounds {
		squares := max(0, w.yy-2*v.Slope*w.xy+v.Slope*v.Slope*w.xx)
		variance := (weight*noise + squares) / (weight + freedom)
		if variance <= 0 { // a line without noise: least squares
			return Variate{w.xy / w.xx, 0, v.Mean}
		}
		v.Slope = (variance*usual + prior*w.xy) / (variance + prior*w.xx)
		v.Variance = variance * prior / (variance + prior*w.xx)
	}
	return v
}

// Part is what x does to a value: it is y less Part(x) that would have been measured at the mean of x.
func (v Variate) Part(x float64) float64 { return v.Slope * (x - v.Mean) }

// Doubt is the variance that taking Part out adds to a value's, since the slope is not known exactly.
func (v Variate) Doubt(x float64) float64 { return v.Variance * (x - v.Mean) * (x - v.Mean) }

// At is the same Variate that moves values to another x, such as 0 for what nothing disturbs.
func (v Variate) At(x float64) Variate { return Variate{v.Slope, v.Variance, x} }

// Widen makes an interval on a ratio scale wider by a variance of the logarithm that it does not hold yet. Its ends move apart
// as if the variance of a normal 95 % interval grew. What has no interval keeps none.
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
