package calibrate

import "math"

// side is the number of a histogram's bins on each side of zero.
const side = 8192

// histogram counts numbers in bins of equal width around zero. It reaches from -2^exponent to
// 2^exponent. It grows by doubling: each two bins become one. So the counts equal those of a
// histogram with the final size from the start. Exact zeros are counted separately, since they are
// many and every scale represents them.
type histogram struct {
	count, zeros uint64
	least, most  float64
	exponent     int
	bins         []uint64 // from the lowest; nil until a non-zero number comes
}

func (h *histogram) addNumber(v float64) {
	if h.count == 0 {
		h.least, h.most = v, v
	}
	h.count++
	h.least, h.most = min(h.least, v), max(h.most, v)
	if v == 0 {
		h.zeros++
		return
	}
	// v = fraction·2^exponent with 0.5 ≤ |fraction| < 1, so 2^exponent is the smallest power of two
	// above |v|.
	if _, exponent := math.Frexp(v); h.bins == nil {
		h.bins, h.exponent = make([]uint64, 2*side), exponent
	} else if exponent > h.exponent {
		h.grow(exponent - h.exponent)
	}
	h.bins[side+int(math.Floor(math.Ldexp(v, -h.exponent)*side))]++
}

// grow doubles the width some times.
func (h *histogram) grow(times int) {
	h.exponent += times
	grown := make([]uint64, 2*side)
	for i, n := range h.bins {
		grown[side+(i-side)>>min(times, 63)] += n // the shift rounds down on both sides of zero
	}
	h.bins = grown
}

// edge returns the lower edge of a bin.
func (h *histogram) edge(bin int) float64 { return math.Ldexp(float64(bin-side)/side, h.exponent) }

// percentile returns a range that excludes at most the share tail of the numbers on each side. It
// is accurate to the width of a bin, and never exceeds the range of the numbers.
func (h *histogram) percentile(tail float64) (least, most float64) {
	allowed := uint64(tail * float64(h.count))
	least, most = h.least, h.most
	below := uint64(0)
	for i, n := range h.bins {
		if i == side {
			n += h.zeros
		}
		if below+n > allowed {
			least = max(least, h.edge(i))
			break
		}
		below += n
	}
	above := uint64(0)
	for i := len(h.bins) - 1; i >= 0; i-- {
		n := h.bins[i]
		if i == side {
			n += h.zeros
		}
		if above+n > allowed {
			most = min(most, h.edge(i+1))
			break
		}
		above += n
	}
	return least, most
}

const (
	levels = 128 // of the magnitudes, as in a signed 8-bit number
	// coarser: bins of the histogram per bin of entropy: 2048 up to the next power of two
	coarser = 4
	coarse  = side / coarser
)

// entropy returns the magnitude at which numbers are best cut off. It is the one for which 128
// levels below it lose the least information, measured as the Kullback-Leibler divergence between
// the represented and the original numbers.
//
// The procedure is that of S. Migacz, "8-bit inference with TensorRT", GPU Technology Conference
// 2017, p. 38. For each number of bins, the numbers beyond count at the last bin in the reference,
// and are missing in the representation. Zeros are skipped: they would outweigh all other numbers,
// and every scale represents them exactly.
func (h *histogram) entropy() (threshold float64) {
	magnitudes := make([]float64, coarse)
	used := 0
	for i, n := range h.bins {
		distance := i - side
		if distance < 0 {
			distance = -1 - distance
		}
		if n > 0 {
			magnitudes[distance/coarser] += float64(n)
			used = max(used, distance/coarser+1)
		}
	}
	const rounding = 1e-9 // nats; differences below it are noise
	sums := newPrefixSums(magnitudes[:used])
	largest := max(-h.least, h.most)
	best := math.Inf(1)
	threshold = largest
	for n := used; n >= levels; n-- { // from the widest: of equal ones, it cuts off the least
		if d := sums.divergence(n); d < best-rounding {
			best, threshold = d, min(largest, math.Ldexp(float64(n)/coarse, h.exponent))
		}
	}
	return threshold
}

// prefixSums has the sums over the bins before each bin that a divergence needs.
type prefixSums struct {
	counts []float64
	terms  []float64 // c·ln(c)
	filled []float64 // number of non-empty bins
}

func newPrefixSums(bins []float64) prefixSums {
	s := prefixSums{make([]float64, len(bins)+1), make([]float64, len(bins)+1), make([]float64, len(bins)+1)}
	for i, c := range bins {
		s.counts[i+1], s.terms[i+1], s.filled[i+1] = s.counts[i]+c, s.terms[i]+term(c), s.filled[i]
		if c > 0 {
			s.filled[i+1]++
		}
	}
	return s
}

// term returns c·ln(c), which tends to 0 with c.
func term(c float64) float64 {
	if c == 0 {
		return 0
	}
	return c * math.Log(c)
}

// divergence returns the Kullback-Leibler divergence, in nats, between all bins and their
// representation by 128 levels over the first n bins. Numbers beyond n count at the n-th bin. It is
// infinite if that bin must hold them but represents nothing.
//
// c are the numbers of a bin, and C those of its level, spread evenly over the F non-empty bins of
// the level. I are the numbers of the first n bins, and T those of all. The divergence is the sum
// of c/T·ln(c/T / (C/F/I)) over the bins. Summed over a level, the only term that depends on the
// bin is c·ln(c).
func (s prefixSums) divergence(n int) float64 {
	inside, total := s.counts[n], s.counts[len(s.counts)-1]
	last := inside - s.counts[n-1]
	beyond := total - inside
	if last == 0 && beyond > 0 {
		return math.Inf(1)
	}
	sum := s.terms[n] - term(last) + term(last+beyond) + total*math.Log(inside/total)
	for level := range levels {
		from, to := level*n/levels, (level+1)*n/levels
		count := s.counts[to] - s.counts[from]
		if count == 0 {
			continue
		}
		represented := math.Log(count / (s.filled[to] - s.filled[from]))
		sum -= count * represented
		if level == levels-1 {
			sum -= beyond * represented
		}
	}
	return sum / total
}
