package mix

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Padding is how a client enlarges its requests, so that fewer shapes come and batches grow. It
// applies to every dimension whose size differs between kinds. The zero value is none.
type Padding struct {
	Multiple  int64   // sizes become multiples of this number; 0: no multiple
	Buckets   []int64 // sizes become the next of these, ascending; nil: no buckets
	IsLongest bool    // sizes become the largest of the mix
}

// The words of paddings.
const (
	None    = "none"
	Longest = "longest"
)

// ParsePadding reads "none", "longest", a multiple ("32") or a list of buckets ("[32,128]").
func ParsePadding(text string) (Padding, error) {
	wrong := fmt.Errorf("%q is no padding: none, longest, a multiple, or a list of sizes", text)
	switch text {
	case None:
		return Padding{}, nil
	case Longest:
		return Padding{IsLongest: true}, nil
	}
	list, isList := strings.CutPrefix(text, "[")
	if !isList {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return Padding{}, wrong
		}
		return Padding{Multiple: n}, nil
	}
	var p Padding
	for part := range strings.SplitSeq(strings.TrimSuffix(list, "]"), ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil || n < 1 {
			return Padding{}, wrong
		}
		p.Buckets = append(p.Buckets, n)
	}
	slices.Sort(p.Buckets)
	return p, nil
}

// Shapes returns the padded shapes of each kind, in the order of the mix. The error names a size
// beyond all buckets.
func (p Padding) Shapes(m Mix) ([]map[string][]int64, error) {
	padded := make([]map[string][]int64, len(m))
	for i, k := range m {
		padded[i] = map[string][]int64{}
		for name, dims := range k.Shapes {
			padded[i][name] = slices.Clone(dims)
			for axis, size := range dims {
				least, most := m.span(name, axis)
				if least == most {
					continue
				}
				target, err := p.size(size, most)
				if err != nil {
					return nil, fmt.Errorf("%w: input %s has the shape %v", err, name, dims)
				}
				padded[i][name][axis] = target
			}
		}
	}
	return padded, nil
}

// span returns the smallest and the largest size of a dimension; 0 if the numbers of dimensions
// differ.
func (m Mix) span(name string, axis int) (least, most int64) {
	for i, k := range m {
		dims := k.Shapes[name]
		if axis >= len(dims) {
			return 0, 0
		}
		if i == 0 {
			least, most = dims[axis], dims[axis]
		}
		least, most = min(least, dims[axis]), max(most, dims[axis])
	}
	return least, most
}

// size returns the padded size of a dimension whose largest size is `most`.
func (p Padding) size(n, most int64) (int64, error) {
	switch {
	case p.IsLongest:
		return most, nil
	case p.Multiple > 0:
		return (n + p.Multiple - 1) / p.Multiple * p.Multiple, nil
	case p.Buckets != nil:
		i, _ := slices.BinarySearch(p.Buckets, n)
		if i == len(p.Buckets) {
			return 0, fmt.Errorf("the size %d exceeds all of %d", n, p.Buckets)
		}
		return p.Buckets[i], nil
	}
	return n, nil
}

// Padded returns the kinds as the server sees them: those that become one shape are one kind.
func (p Padding) Padded(m Mix) (Mix, error) {
	shapes, err := p.Shapes(m)
	if err != nil {
		return nil, err
	}
	kinds := make([]Kind, len(m))
	for i, k := range m {
		kinds[i] = Kind{k.Share, shapes[i]}
	}
	return New(kinds)
}

// DescribePadding names a padding: "padded to multiples of 32", "padded to 32, 128", "padded to the
// longest"; "" for none.
func DescribePadding(text string) string {
	switch p, err := ParsePadding(text); {
	case err != nil:
		return "padding " + text
	case p.Multiple > 0:
		return fmt.Sprintf("padded to multiples of %d", p.Multiple)
	case p.IsLongest:
		return "padded to the longest"
	case p.Buckets != nil:
		return "padded to " + strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Buckets), " ", ", "), "[]")
	}
	return ""
}
