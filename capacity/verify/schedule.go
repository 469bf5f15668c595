package verify

import (
	"math"
	"sort"
	"time"

	"tuner/capacity"
	"tuner/capacity/replica"
	"tuner/capacity/traffic"
	"tuner/measure/arrivals"
)

// schedule has the instants of a replay.
type schedule struct {
	before  []time.Duration // of the warm-up, since its beginning
	counted []time.Duration // since the beginning of the piece
}

// warming is the time of the warm-up at the first rate of the piece. Servers have executed all sizes of
// batches then.
const warming = 5 * time.Second

// instants draws the requests of a piece. A moment has requests for each of its replicas; the replay has
// scale times as many. cv is the coefficient of variation of the distances between requests: 1 is a
// Poisson process.
//
// The distances are drawn at the mean rate 1, and time is changed so that the rate follows the moments.
func instants(moments []capacity.Moment, scale, cv float64, seed uint64) schedule {
	step := traffic.Step.Seconds()
	due := []float64{0} // requests until the beginning of each moment
	for _, m := range moments {
		due = append(due, due[len(due)-1]+scale*m.Each())
	}
	s := schedule{before: []time.Duration{0}}
	if rate := (due[1] - due[0]) / step; rate > 0 {
		s.before = drawn(rate*warming.Seconds(), cv, seed+1)
		for i := range s.before {
			s.before[i] = time.Duration(float64(s.before[i]) / rate)
		}
	}
	s.counted = drawn(due[len(due)-1], cv, seed)
	for i, at := range s.counted {
		n := at.Seconds()
		k := min(sort.SearchFloat64s(due[1:], n), len(moments)-1)
		within := (n - due[k]) / (due[k+1] - due[k]) // n lies above due[k]
		s.counted[i] = time.Duration((float64(k) + within) * step * float64(time.Second))
	}
	return s
}

// drawn returns instants until an end, at the mean rate 1/s. There is one at least, in the middle.
func drawn(end, cv float64, seed uint64) (list []time.Duration) {
	p, _ := replica.Clustered(cv)
	s, err := p.Schedule(1, seed)
	if err != nil || !(end > 0) || math.IsInf(end, 0) {
		return []time.Duration{time.Duration(max(end, 0) / 2 * float64(time.Second))} // the rate 1 is always possible
	}
	for at := s.Next(); at.Seconds() < end; at = s.Next() {
		list = append(list, at)
	}
	if len(list) == 0 {
		list = append(list, time.Duration(end/2*float64(time.Second)))
	}
	return list
}

// arrivals returns the schedule of the load: the warm-up, and then the piece. The load begins each of them
// at its first instant.
func (s schedule) arrivals() arrivals.Schedule { return arrivals.Joined(s.before, s.counted) }
