package stats

import (
	"math"
)

// Variogram estimates how long the values of a series depend on each other. It sums up half the squared
// differences of pairs by their distance (Matheron, Economic Geology 58, 1963). It needs no mean, so a
// series may be far shorter than its values depend on each other. The zero value is empty.
type Variogram struct {
	pairs     [variogramBins]float64 // number of pairs
	distances [variogramBins]float64 // sums
	halves    [variogramBins]float64 // sums of half the squared differences
}

// The bins of the distances have a ratio of a quarter of a doubling. Doubled, the range is known to a factor of
// 1.4 instead of 1.2, since a fit tries the distances of the bins.
const (
	variogramBins  = 80
	binsOfDoubling = 4
	leastDistance  = 1e-3
)

// Add adds a pair of values at a distance > 0. Pairs that are nearer than a thousandth, or farther than
// 1,000, are in the first and the last bin.
func (v *Variogram) Add(distance, a, b float64) {
	bin := min(max(int(binsOfDoubling*math.Log2(distance/leastDistance)), 0), variogramBins-1)
	v.pairs[bin]++
	v.distances[bin] += distance
	v.halves[bin] += (a - b) * (a - b) / 2
}

// Exponential fits nugget + sill·(1 − exp(−distance/scale)) by least squares, each bin weighted by its
// number of pairs. nugget is the variance of what only one value has, and sill that of what near values
// share: an Ornstein-Uhlenbeck process with the time constant scale. It returns false with fewer than
// three bins, and if near values share nothing.
func (v *Variogram) Exponential() (nugget, sill, scale float64, ok bool) {
	type point struct{ distance, half, weight float64 }
	var points []point
	for i, n := range v.pairs {
		if n > 0 {
			points = append(points, point{v.distances[i] / n, v.halves[i] / n, n})
		}
	}
	if len(points) < 3 {
		return 0, 0, 0, false
	}
	least := math.Inf(1)
	for _, at := range points {
		var w, x, y, xx, xy float64 // weighted sums
		shared := func(p point) float64 { return -math.Expm1(-p.distance / at.distance) }
		for _, p := range points {
			s := shared(p)
			w, x, y, xx, xy = w+p.weight, x+p.weight*s, y+p.weight*p.half, xx+p.weight*s*s, xy+p.weight*s*p.half
		}
		b := (w*xy - x*y) / (w*xx - x*x)
		a := (y - b*x) / w
		if a < 0 {
			a, b = 0, xy/xx
		}
		miss := 0.0
		for _, p := range points {
			d := a + b*shared(p) - p.half
			miss += p.weight * d * d
		}
		if b > 0 && miss < least {
			nugget, sill, scale, ok, least = a, b, at.distance, true, miss
		}
	}
	return nugget, sill, scale, ok
}
