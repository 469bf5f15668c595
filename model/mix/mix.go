// Package mix describes requests of different shapes as a list of kinds: the shapes of all inputs,
// and the share of the requests that have them.
//
// A user writes a mix as weighted shapes, as a distribution of one dimension, or as rows of
// different shapes. All become a Mix, which load, journal, search and reports read. The package
// makes no tensor and reads no model: package profile checks the shapes against it.
package mix

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"tuner/internal/checksum"
)

// Kind is the requests of one shape.
type Kind struct {
	Share  float64            `json:"share"`  // of all requests, above 0
	Shapes map[string][]int64 `json:"shapes"` // sizes of each input in a row, without the batch dimension
}

// Elements returns the number of elements of a row, of all inputs together.
func (k Kind) Elements() float64 {
	total := 0.0
	for _, dims := range k.Shapes {
		n := 1.0
		for _, d := range dims {
			n *= float64(d)
		}
		total += n
	}
	return total
}

// text returns the shapes of the given inputs.
func (k Kind) text(names []string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%s %v", name, k.Shapes[name])
	}
	return strings.Join(parts, ", ")
}

// Mix is a list of kinds with different shapes, in ascending order of their elements. The shares
// sum to 1. nil stands for requests of one shape. It must not be changed.
type Mix []Kind

// New makes a mix from kinds whose shares are weights. Kinds of equal shapes become one, and those
// without weight are left out. A weight that is negative or not finite is an error, as are weights
// that sum to zero.
func New(weighted []Kind) (Mix, error) {
	total := 0.0
	byShape := map[string]int{}
	var m Mix
	for i, k := range weighted {
		if !(k.Share >= 0) || math.IsInf(k.Share, 0) {
			return nil, fmt.Errorf("the weight %v of shape %d is not a number from 0 on", k.Share, i+1)
		}
		if k.Share == 0 {
			continue
		}
		total += k.Share
		key := k.text(slices.Sorted(maps.Keys(k.Shapes)))
		at, known := byShape[key]
		if !known {
			at = len(m)
			byShape[key] = at
			m = append(m, Kind{Shapes: k.Shapes})
		}
		m[at].Share += k.Share
	}
	if total == 0 || math.IsInf(total, 0) {
		return nil, errors.New("the weights sum to zero, or are too large: give at least one shape a weight above 0")
	}
	for i := range m {
		m[i].Share /= total
	}
	slices.SortStableFunc(m, func(a, b Kind) int {
		names := slices.Sorted(maps.Keys(a.Shapes))
		return cmp.Or(cmp.Compare(a.Elements(), b.Elements()), cmp.Compare(a.text(names), b.text(names)))
	})
	return m, nil
}

// Digest returns the sha256 of the kinds, as lower-case hex.
func (m Mix) Digest() string {
	digest, err := checksum.OfJSON(m)
	if err != nil {
		panic(fmt.Sprintf("cannot encode kinds: %v", err)) // numbers and texts alone
	}
	return digest
}

// Largest returns the kind with the most elements.
func (m Mix) Largest() Kind { return m[len(m)-1] }

// Usual returns the index of the kind with the largest share.
func (m Mix) Usual() int {
	usual := 0
	for i, k := range m {
		if k.Share > m[usual].Share {
			usual = i
		}
	}
	return usual
}

// Varying returns the inputs whose shapes differ between kinds, by name.
func (m Mix) Varying() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m[0].Shapes)) {
		if slices.ContainsFunc(m[1:], func(k Kind) bool { return !slices.Equal(k.Shapes[name], m[0].Shapes[name]) }) {
			names = append(names, name)
		}
	}
	return names
}

// Axes returns the dimensions of an input whose sizes differ between kinds, from 0, without the batch.
func (m Mix) Axes(name string) []int {
	var axes []int
	for axis := range m[0].Shapes[name] {
		if least, most := m.span(name, axis); least != most {
			axes = append(axes, axis)
		}
	}
	return axes
}

// mostListed is the number of kinds that String lists.
const mostListed = 6

// String describes the mix for people: "60 % input_ids [16], 30 % [64], 10 % [256]". The sizes of
// further kinds have the same order of inputs. Of many kinds it names the ends.
func (m Mix) String() string {
	if len(m) == 0 {
		return "one shape"
	}
	names := m.Varying()
	if len(m) == 1 {
		names = slices.Sorted(maps.Keys(m[0].Shapes))
	}
	if len(m) > mostListed {
		return fmt.Sprintf("%d shapes from %s to %s", len(m), m[0].text(names), m.Largest().text(names))
	}
	parts := make([]string, len(m))
	for i, k := range m {
		text := k.text(names)
		if i > 0 {
			text = k.sizes(names)
		}
		parts[i] = fmt.Sprintf("%.3g %% %s", 100*k.Share, text)
	}
	return strings.Join(parts, ", ")
}

// sizes returns the shapes of the given inputs without their names; once if all are equal.
func (k Kind) sizes(names []string) string {
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprint(k.Shapes[name]))
	}
	if len(slices.Compact(slices.Clone(parts))) == 1 {
		return parts[0]
	}
	return strings.Join(parts, ", ")
}

// Deal returns the kinds of n requests in random order. Each kind has its share of them, rounded so
// that all together are n (largest remainders). The same seed gives the same order.
func (m Mix) Deal(n int, seed uint64) []int {
	counts, remainders, left := make([]int, len(m)), make([]float64, len(m)), n
	order := make([]int, len(m))
	for i, k := range m {
		exact := k.Share * float64(n)
		counts[i] = int(exact)
		remainders[i], order[i] = exact-float64(counts[i]), i
		left -= counts[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainders[b], remainders[a]) })
	for i := range max(left, 0) {
		counts[order[i%len(order)]]++
	}
	kinds := make([]int, 0, n)
	for i, count := range counts {
		for range count {
			kinds = append(kinds, i)
		}
	}
	random := rand.New(rand.NewPCG(seed, 2))
	random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	return kinds[:min(n, len(kinds))]
}

// Cycle returns the largest prime that is not above n, or 1. A client sends every c-th request of a
// cycle, where c is the number of requests in flight. If the cycle's length is prime, it meets all
// requests. With another length it might meet long requests only.
func Cycle(n int) int {
	for ; n > 2; n-- {
		if isPrime(n) {
			return n
		}
	}
	return max(n, 1)
}

func isPrime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}
