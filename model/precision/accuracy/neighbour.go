package accuracy

import (
	"math"
	"slices"
)

const (
	minNeighbourRows = 16   // with fewer rows, the nearest is not meaningful
	maxNeighbourRows = 2000 // the work grows with the square
	// maxNeighbourWork: products of elements, about a second; each pair of rows takes one per
	// column on both sides
	maxNeighbourWork = 1 << 30
)

// neighbourRows returns the number of compared rows for an output with this many columns.
func neighbourRows(columns int) int {
	return min(maxNeighbourRows, int(math.Sqrt(float64(maxNeighbourWork/columns))))
}

// neighbours returns the share of rows whose nearest other row is the same on both sides. It
// returns NaN for too few rows, and for rows of several widths, which have no cosine between them.
// Both sides have the same widths.
func neighbours(a, b [][]float64) float64 {
	if len(a) < minNeighbourRows || slices.ContainsFunc(a, func(row []float64) bool { return len(row) != len(a[0]) }) {
		return math.NaN()
	}
	x, y := nearest(a), nearest(b)
	same := 0
	for i := range x {
		if x[i] == y[i] {
			same++
		}
	}
	return float64(same) / float64(len(x))
}

// nearest returns for each row the other row with the largest cosine, the first of equal ones.
func nearest(rows [][]float64) []int {
	unit := make([][]float64, len(rows))
	for i, row := range rows {
		unit[i] = normalise(row)
	}
	place := make([]int, len(rows))
	best := make([]float64, len(rows))
	for i := range best {
		best[i] = math.Inf(-1)
	}
	for i, a := range unit {
		for j, b := range unit[:i] {
			v := dot(a, b)
			if v > best[i] {
				best[i], place[i] = v, j
			}
			if v > best[j] {
				best[j], place[j] = v, i
			}
		}
	}
	return place
}

// normalise scales a row to length 1. Zeros stay zeros, and non-finite elements count as zero.
func normalise(row []float64) []float64 {
	out := make([]float64, len(row))
	sum := 0.0
	for i, v := range row {
		if isFinite(v) {
			out[i], sum = v, sum+v*v
		}
	}
	if sum == 0 {
		return out
	}
	length := math.Sqrt(sum)
	for i := range out {
		out[i] /= length
	}
	return out
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
