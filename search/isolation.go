package search

import (
	"slices"
	"strings"
)

// dividedPrefix begins the values of KnobIsolation for divided cores.
const dividedPrefix = "cores:"

// DividedCores returns the value of KnobIsolation for models that have cores of their own: "cores:1,3".
// cores are those of each model, in the order of the space's parts.
func DividedCores(cores []int) Value {
	return dividedPrefix + Value(strings.Trim(string(IntsValue(cores)), "[]"))
}

// Divided returns the cores of each model, in the order of the space's parts; false if the value is not
// one of DividedCores.
func (v Value) Divided() ([]int, bool) {
	text, isDivided := strings.CutPrefix(string(v), dividedPrefix)
	cores, err := Value("[" + text + "]").Ints()
	if !isDivided || err != nil || len(cores) == 0 || slices.Min(cores) < 1 {
		return nil, false
	}
	return cores, true
}
