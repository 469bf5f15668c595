package capacity

import (
	"time"

	"tuner/capacity/replica"
	"tuner/capacity/traffic"
)

// Moment is a step of a simulated fleet.
type Moment struct {
	Requests float64 // that came
	Ready    int     // replicas that answered them
	Misses   float64 // requests of these that do not keep the limit
}

// Each returns the requests of one replica.
func (m Moment) Each() float64 { return m.Requests / float64(max(m.Ready, 1)) }

// Piece is a part of a traffic, as a simulated fleet served it.
type Piece struct {
	Begin   time.Duration // since the beginning of the traffic
	Moments []Moment      // of its steps; at least one
}

// WorstPiece returns a piece of a fleet's worst hour: of the hour in which the most requests miss the
// limit, the piece of a length in which the most do. Where none does, the replicas have the most
// requests there. The question's bounds of the number of replicas and its scaler do not count, and
// the scaling must be an autoscaler's or fixed.
func WorstPiece(q Question, r replica.Replica, s Scaling, length time.Duration) (Piece, error) {
	all, err := Moments(q, r, s)
	if err != nil {
		return Piece{}, err
	}
	from, hour := worst(all, int(time.Hour/traffic.Step))
	start, piece := worst(hour, max(1, int(length/traffic.Step)))
	return Piece{Begin: time.Duration(from+start) * traffic.Step, Moments: piece}, nil
}

// Moments returns the steps of a fleet under the traffic. The question and the scaling are as those of
// WorstPiece.
func Moments(q Question, r replica.Replica, s Scaling) ([]Moment, error) {
	q.Min, q.Max = s.Min, s.Max
	if s.Startup > 0 {
		q.Startup = time.Duration(s.Startup * float64(time.Second))
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	set, err := s.settings()
	if err != nil {
		return nil, err
	}
	x := newSearcher(&q, []replica.Replica{r})
	var all []Moment
	x.watch(x.sites[0], set, false, func(m Moment) { all = append(all, m) })
	return all, nil
}

// worst returns the n moments in a row that miss the most, and where they begin. Among equal ones it
// takes those with the most requests for each replica.
func worst(all []Moment, n int) (begin int, moments []Moment) {
	n = min(n, len(all))
	misses, busy := 0.0, 0.0
	mostMisses, mostBusy := -1.0, -1.0
	for i, m := range all {
		misses, busy = misses+m.Misses, busy+m.Each()
		if i >= n {
			old := all[i-n]
			misses, busy = misses-old.Misses, busy-old.Each()
		}
		if i < n-1 {
			continue
		}
		if misses > mostMisses+leastMiss || misses > mostMisses-leastMiss && busy > mostBusy {
			begin, mostMisses, mostBusy = i-n+1, max(misses, mostMisses), busy
		}
	}
	return begin, all[begin : begin+n]
}

// leastMiss is the difference in missed requests below which two parts count as equal: sums of floating
// point numbers differ by less.
const leastMiss = 1e-6
