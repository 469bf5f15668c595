package joint

import (
	"fmt"
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

// CountDivisions returns the number of Divisions, at most limit: cores−1 over models−1. That is as many as over
// cores−models, and up to the smaller of both the numbers on the way rise.
func CountDivisions(models, cores, limit int) int {
	if models < 1 || models > cores {
		return 0
	}
	n := 1
	for i := 1; i <= min(models-1, cores-models); i++ {
		if n = n * (cores - i) / i; n >= limit {
			return limit
		}
	}
	return n
}

// IsolationCores stands for cores of each model's own in a profile: the knob isolation then has all
// Divisions of the server's cores.
const IsolationCores = "cores"

// mostDivisions is the largest number of divisions of a server's cores. A knob lists them all: four models
// on 64 cores have 39,711.
const mostDivisions = 1 << 16

// Isolation returns the knob of how models share the cores: search.IsolationShared, IsolationCores, or
// both. Without a value no knob is returned, and they share them all.
func Isolation(values []search.Value, models, cores int) []search.Knob {
	if len(values) == 0 {
		return nil
	}
	k := search.Knob{Name: search.KnobIsolation, Scope: search.ScopePool}
	for _, v := range values {
		if v == IsolationCores {
			k.Values = append(k.Values, Divisions(models, cores)...)
		} else {
			k.Values = append(k.Values, v)
		}
	}
	return []search.Knob{k}
}

// CheckDivisions returns an error if models cannot have cores of their own, or if there are too many
// ways to divide the cores.
func CheckDivisions(models, cores int) error {
	switch {
	case models > cores:
		return fmt.Errorf("%d models cannot have cores of their own, since this machine has %d; write isolation: shared", models, cores)
	case CountDivisions(models, cores, mostDivisions) == mostDivisions:
		return fmt.Errorf("%d cores can be divided among %d models in more than %d ways; write isolation: shared, or serve fewer models together", cores, models, mostDivisions)
	}
	return nil
}
