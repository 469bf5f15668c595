package meter

import (
	"slices"

	"tuner/measure"
)

// Join leaves out every second reading, from number 1 on. Windows are joined in pairs in the same
// way. The next reading includes the time of the one left out.
func Join(readings []Reading) []Reading {
	var kept []Reading
	for i := 0; i < len(readings); i += 2 {
		r := readings[i]
		if i > 0 {
			r.include(readings[i-1], readings[i-1].At.Sub(readings[i-2].At).Seconds())
		}
		kept = append(kept, r)
	}
	return kept
}

// include extends r by the time of the reading before it. seconds is the duration that before
// covers.
func (r *Reading) include(before Reading, seconds float64) {
	own := r.At.Sub(before.At).Seconds()
	r.Memory = max(r.Memory, before.Memory)
	r.Frequency = weighted(before.Frequency, seconds, r.Frequency, own)
	gpus := slices.Clone(before.GPUs)
	for _, g := range r.GPUs {
		i := slices.IndexFunc(gpus, func(earlier measure.GPUWindow) bool { return earlier.UUID == g.UUID })
		if i < 0 {
			gpus = append(gpus, g)
			continue
		}
		gpus[i] = gpus[i].Plus(seconds, g, own)
	}
	r.GPUs = gpus
}

// weighted returns the mean of two values, weighted by their times. A value of 0 is unknown and
// does not count.
func weighted(a, overA, b, overB float64) float64 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return (a*overA + b*overB) / (overA + overB)
}
