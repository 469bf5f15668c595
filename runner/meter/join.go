package meter

import (
	"slices"

	"tuner/measure"
)

// Join leaves every second reading out, from the one with number 1 on, as it is done with the edges of windows that are joined in pairs.
// What it told of the time before it is in the next one.
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

// include has a reading also tell of the time, in seconds, that the one before it tells of.
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

// weighted is the mean of two values over their times; one that is 0 is not known.
func weighted(a, overA, b, overB float64) float64 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return (a*overA + b*overB) / (overA + overB)
}
