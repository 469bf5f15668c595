package main

import (
	"slices"

	"gonum.org/v1/gonum/stat"
)

// ranks numbers values from the highest, 1, down. Equal values share the mean of their ranks.
func ranks(values []float64) []float64 {
	descending := slices.Clone(values)
	slices.Sort(descending)
	slices.Reverse(descending)
	out := make([]float64, len(values))
	for i, v := range values {
		first := slices.Index(descending, v)
		last := first
		for last+1 < len(descending) && descending[last+1] == v {
			last++
		}
		out[i] = float64(first+last)/2 + 1
	}
	return out
}

// spearman returns the rank correlation of two figures of the same things, from -1 to 1: the linear
// correlation of their ranks. It is NaN if one figure is constant.
func spearman(a, b []float64) float64 {
	return stat.Correlation(ranks(a), ranks(b), nil)
}

// kept returns the share of b's best value that a choice by a keeps. It is 1 if both agree on the
// best.
func kept(a, b []float64) float64 {
	return b[best(a)] / slices.Max(b)
}

// best returns the index of the highest value.
func best(values []float64) int { return slices.Index(values, slices.Max(values)) }
