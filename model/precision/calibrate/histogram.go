package calibrate

import "math"

// side is the number of a histogram's bins on each side of zero.
const side = 8192

// histogram counts numbers in bins of equal width around zero. It reaches from -2^exponent to 2^exponent and grows by doubling,
// when each two bins become one: so the counts are those of a histogram that had its final size from the start. Exact zeros
// are counted apart, since they are many and every scale represents them.
type histogram struct {
	count, zeros uint64
	least, most  float64
	exponent     int
	bins         []uint64 // from the lowest; nil until a number other than zero comes
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
	// v = fraction·2^exponent with 0.5 ≤ |fraction| < 1: the least power of two above |v|.
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

// percentile returns a range that leaves at most the share tail of the numbers out on each side, to the width of a bin and
// never beyond what was seen.
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
	levels  = 128 // of the magnitudes, as a signed 8-bit number has
	coarser = 4   // bins of the histogram that make one of entropy's: 2048 to the next power of two
	coarse  = side / coarser
)

// entropy returns the magnitude beyond which numbers are best cut off: the one for which 128 levels below it lose the least
// information, measured by the Kullback-Leibler divergence of what they represent from what was there. (The procedure is that
// of S. Migacz, "8-bit inference with TensorRT", GPU Technology Conference 2017, p. 38: for each number of bins, the numbers
// beyond count at the last one in the reference, and are missing in what is represented.) Zeros are left out: they would
// outweigh everything else and are represented exactly at any scale.
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
	for n := used; n >= levels; n-- { // from the widest: of equals, it cuts off the least
		if d := sums.divergence(n); d < best-rounding {
			best, threshold = d, min(largest, math.Ldexp(float64(n)/coarse, h.exponent))
		}
	}
	return threshold
}

// prefixSums are, of the bins before each, the sums that a divergence is made of.
type prefixSums struct {
	counts []float64
	terms  []float64 // c·ln(c)
	filled []float64 // bins that are not empty
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

// divergence returns the Kullback-Leibler divergence, in nats, of the first n bins represented by 128 levels from all bins, of
// which those beyond n count as the n-th. It is infinite when that bin should hold them and represents nothing.
//
// With c the numbers of a bin, C those of its level, spread evenly over the F bins of the level that are not empty, I those of
// the first n bins and T those of all, it is the sum of c/T·ln(c/T / (C/F/I)) over the bins; summed over a level, the only
// term that depends on the bin is c·ln(c).
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
