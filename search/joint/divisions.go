package joint

import (
	"slices"

	"tuner/search"
)

// Divisions lists the values of the knob isolation that give each model cores of its own: every division
// of the server's cores among them, in ascending order of the first model's cores, then of the second's,
// and so on. The list is empty if the server has fewer cores than models.
func Divisions(models, cores int) []search.Value {
	var list []search.Value
	var divide func(given []int, left int)
	divide = func(given []int, left int) {
		after := models - len(given) - 1 // models after the next one
		if after == 0 {
			list = append(list, search.DividedCores(append(slices.Clip(given), left)))
			return
		}
		for n := 1; n <= left-after; n++ {
			divide(append(slices.Clip(given), n), left-n)
		}
	}
	if models > 0 && models <= cores {
		divide(nil, cores)
	}
	return list
}

// CountDivisions returns the number of Divisions, at most limit: cores−1 over models−1.
func CountDivisions(models, cores, limit int) int {
	if models < 1 || models > cores {
		return 0
	}
	n := 1
	for i := 1; i < models; i++ {
		if n = n * (cores - i) / i; n >= limit {
			return limit
		}
	}
	return n
}
