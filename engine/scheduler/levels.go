package scheduler

import "math/bits"

// levelSet is a set of priority levels. The first layer has a bit for each level. Each further
// layer has a bit for each non-empty word of the layer below. So finding the next level takes as
// many steps as there are layers: three for 65,536 levels.
type levelSet struct {
	layers [][]uint64
	steps  *int // counts the words that were read
}

func newLevelSet(levels int, steps *int) levelSet {
	s := levelSet{steps: steps}
	for words := levels; words > 1 || len(s.layers) == 0; {
		words = (words + 63) / 64
		s.layers = append(s.layers, make([]uint64, words))
	}
	return s
}

func (s levelSet) add(i int) {
	for _, words := range s.layers {
		*s.steps++
		word := &words[i/64]
		wasEmpty := *word == 0
		*word |= 1 << (i % 64)
		if !wasEmpty {
			return
		}
		i /= 64
	}
}

func (s levelSet) remove(i int) {
	for _, words := range s.layers {
		*s.steps++
		word := &words[i/64]
		*word &^= 1 << (i % 64)
		if *word != 0 {
			return
		}
		i /= 64
	}
}

// next returns the lowest member that is not below i, or -1.
func (s levelSet) next(i int) int {
	for k, words := range s.layers { // up, until a word holds a later member
		*s.steps++
		if i/64 >= len(words) {
			return -1
		}
		if later := words[i/64] >> (i % 64) << (i % 64); later != 0 {
			return s.down(k, i/64*64+bits.TrailingZeros64(later))
		}
		i = i/64 + 1
	}
	return -1
}

// down returns the lowest level for which member i of layer k stands.
func (s levelSet) down(k, i int) int {
	for k--; k >= 0; k-- {
		*s.steps++
		i = i*64 + bits.TrailingZeros64(s.layers[k][i])
	}
	return i
}
