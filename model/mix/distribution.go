package mix

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Size is a size of a dimension, with its weight.
type Size struct {
	Size   int64
	Weight float64
}

// MostKinds is the largest number of kinds that a distribution becomes. More sizes are joined in
// bins of equal weight. A larger number changes predictions and measurements little: with it, two
// random requests already have the same shape in 1 of 64 cases.
const MostKinds = 64

// mostRows bounds a histogram file.
const mostRows = 1_000_000

// ReadHistogram reads a CSV file with a size and its weight on each line, and maybe a heading on
// the first. Errors name the line.
func ReadHistogram(r io.Reader) ([]Size, error) {
	reader := csv.NewReader(r)
	reader.FieldsPerRecord, reader.ReuseRecord, reader.TrimLeadingSpace, reader.Comment = 2, true, true, '#'
	var sizes []Size
	for n := 1; ; n++ {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w; write size,weight on each line", err)
		}
		line, _ := reader.FieldPos(0)
		size, sizeErr := strconv.ParseInt(strings.TrimSpace(record[0]), 10, 64)
		weight, weightErr := strconv.ParseFloat(strings.TrimSpace(record[1]), 64)
		switch {
		case n == 1 && sizeErr != nil && weightErr != nil: // a heading
		case sizeErr != nil || size < 1 || size > math.MaxInt32:
			return nil, fmt.Errorf("line %d: %q is not a size: whole numbers from 1 to %d", line, record[0], math.MaxInt32)
		case weightErr != nil || !(weight >= 0) || math.IsInf(weight, 0):
			return nil, fmt.Errorf("line %d: %q is not a weight: numbers from 0 on", line, record[1])
		default:
			sizes = append(sizes, Size{size, weight})
		}
		if len(sizes) > mostRows {
			return nil, fmt.Errorf("line %d: there are more than %d sizes: join some", line, mostRows)
		}
	}
	if len(sizes) == 0 {
		return nil, errors.New("it has no sizes: write size,weight on each line")
	}
	return sizes, nil
}

// Lognormal is a distribution of sizes by two of its quantiles.
type Lognormal struct {
	P50, P99 float64 // the median, and the size that 1 % of the requests exceed; P99 ≥ P50 ≥ 1
	Max      int64   // larger sizes become this one, as of a client that cuts its texts; 0: none
}

// z99 is the 99 % quantile of the standard normal distribution.
const z99 = 2.3263478740408408

// Sizes returns MostKinds sizes of equal weight: the mean of each of as many quantile bins, rounded.
// Bins with the same rounded mean become one.
func (l Lognormal) Sizes() []Size {
	mu, sigma := math.Log(l.P50), math.Log(l.P99/l.P50)/z99
	if sigma == 0 {
		return []Size{{l.cut(l.P50), 1}}
	}
	// The mean of x between the quantiles z₀ and z₁ is exp(μ + σ²/2)·(Φ(z₁−σ) − Φ(z₀−σ)) per
	// probability Φ(z₁) − Φ(z₀).
	mean, z0 := math.Exp(mu+sigma*sigma/2), math.Inf(-1)
	var sizes []Size
	for i := range MostKinds {
		z1 := math.Sqrt2 * math.Erfinv(2*float64(i+1)/MostKinds-1)
		x := mean * (normal(z1-sigma) - normal(z0-sigma)) * MostKinds
		sizes = append(sizes, Size{l.cut(x), 1})
		z0 = z1
	}
	return joined(sizes)
}

// cut rounds a size and applies the bounds.
func (l Lognormal) cut(x float64) int64 {
	n := int64(math.Round(min(x, math.MaxInt32)))
	if l.Max > 0 {
		n = min(n, l.Max)
	}
	return max(n, 1)
}

// normal is the distribution function of the standard normal distribution.
func normal(z float64) float64 { return (1 + math.Erf(z/math.Sqrt2)) / 2 }

// Binned returns at most MostKinds sizes. More are joined in bins of about equal weight, in the
// order of the sizes. A bin has the mean of its sizes, rounded.
func Binned(sizes []Size) []Size {
	bins, _ := binned(sizes)
	return bins
}

// BinOf returns the function from one of the sizes to the index of its bin in Binned.
func BinOf(sizes []Size) func(size int64) int {
	_, tops := binned(sizes)
	return func(size int64) int {
		i, _ := slices.BinarySearch(tops, size)
		return min(i, len(tops)-1)
	}
}

// binned returns the bins of sizes in ascending order, and the largest size of each.
func binned(sizes []Size) (bins []Size, tops []int64) {
	sizes = joined(sizes)
	total := 0.0
	for _, s := range sizes {
		total += s.Weight
	}
	isFew := len(sizes) <= MostKinds
	sum, weight, before, made := 0.0, 0.0, 0.0, 0
	for i, s := range sizes {
		sum, weight = sum+s.Weight*float64(s.Size), weight+s.Weight
		isFull := isFew || before+weight >= total*float64(made+1)/MostKinds
		if !isFew && (weight == 0 || !isFull && i < len(sizes)-1) {
			continue
		}
		bin := Size{s.Size, s.Weight}
		if !isFew {
			bin = Size{int64(math.Round(sum / weight)), weight}
		}
		made++
		if n := len(bins); n > 0 && bins[n-1].Size == bin.Size { // their means round to the same
			bins[n-1].Weight += bin.Weight
			tops[n-1] = s.Size
		} else {
			bins, tops = append(bins, bin), append(tops, s.Size)
		}
		before, sum, weight = before+weight, 0, 0
	}
	return bins, tops
}

// joined sorts sizes, and adds up the weights of equal ones.
func joined(sizes []Size) []Size {
	sorted := slices.SortedStableFunc(slices.Values(sizes), func(a, b Size) int { return cmp.Compare(a.Size, b.Size) })
	var list []Size
	for _, s := range sorted {
		if n := len(list); n > 0 && list[n-1].Size == s.Size {
			list[n-1].Weight += s.Weight
			continue
		}
		list = append(list, s)
	}
	return list
}
