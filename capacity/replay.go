package capacity

import (
	"fmt"
	"math"
	"time"

	"tuner/capacity/autoscaler"
	"tuner/capacity/replica"
)

// Replay simulates a given scaling under a traffic: what a plan promises on days that it has not seen.
// The question's limits on the number of replicas and its scaler do not count.
func Replay(q Question, r replica.Replica, s Scaling) (Fleet, error) {
	q.Min, q.Max = s.Min, s.Max
	if s.Startup > 0 {
		q.Startup = time.Duration(s.Startup * float64(time.Second))
	}
	if err := q.check(); err != nil {
		return Fleet{}, err
	}
	x := newSearcher(&q, []replica.Replica{r})
	site := x.sites[0]
	switch s.Scaler {
	case cpuScaler:
		if a, ok := x.usual(site); ok {
			return x.fleet(&a, "replay"), nil
		}
		return Fleet{}, fmt.Errorf("the processor time of %s is unknown", r.Configuration)
	case clairvoyant:
		if site.safe == 0 {
			return Fleet{}, fmt.Errorf("%s keeps the limit at no rate", r.Configuration)
		}
		a, _ := x.clairvoyant(site)
		return x.fleet(&a, "replay"), nil
	}
	set, err := s.settings()
	if err != nil {
		return Fleet{}, err
	}
	a := x.try(site, set, true)
	return x.fleet(&a, "replay"), nil
}

// settings returns the autoscaler's, of a fleet that is not only for comparison.
func (s Scaling) settings() (autoscaler.Settings, error) {
	set := autoscaler.Settings{Min: s.Min, Max: s.Max}
	switch s.Scaler {
	case Fixed:
		set.Max = set.Min
	case HPA, KEDA:
		b := autoscaler.DefaultBehavior()
		b.Down.Stabilization = time.Duration(s.Down * float64(time.Second))
		b.Up.Tolerance, b.Down.Tolerance = s.Tolerance, s.Tolerance
		set.Source, set.Target, set.Behavior = s.Scaler.source(), int64(math.Round(s.Target*1000)), &b
	default:
		return set, fmt.Errorf("%q is no autoscaler", s.Scaler)
	}
	return set, nil
}
