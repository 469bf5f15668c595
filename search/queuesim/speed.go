package queuesim

import (
	"math"

	"tuner/measure"
)

// speed is the machine's speed in a simulation: an Ornstein-Uhlenbeck process, drawn where it is asked for.
type speed struct {
	measure.Speed
	numbers random
	log     float64 // of the time that work takes, at the last instant
	last    float64 // s, the last instant
}

func (s *speed) reset(of measure.Speed, seed uint64) {
	s.Speed = of
	if of.Deviation > 0 {
		s.numbers.seed(seed, 6)
		s.log, s.last = of.Deviation*s.numbers.numbers.NormFloat64(), 0
	}
}

// slowness returns the factor by which work that begins now takes longer than the curve says. Measured times are
// means over batches, and a slow machine makes fewer of them. So the mean of the speed over time is 1, and not that of
// the slowness.
func (s *speed) slowness(now float64) float64 {
	if s.Deviation == 0 {
		return 1
	}
	left := math.Exp(-(now - s.last) / s.Time)
	s.log = s.log*left + s.Deviation*math.Sqrt(1-left*left)*s.numbers.numbers.NormFloat64()
	s.last = now
	return math.Exp(s.log + s.Deviation*s.Deviation/2)
}
