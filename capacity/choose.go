package capacity

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tuner/capacity/replica"
	"tuner/internal/parallel"
	"tuner/measure"
	"tuner/report/result"
)

// mostConfigurations is the number of configurations of a result that a plan considers, besides the
// default. Each costs about 0.1 s of simulations. Others answer fewer requests within the limit.
const mostConfigurations = 4

// Replicas makes the replicas of a result's configurations that answer the most requests while a share of them, 0..1, keeps
// the limit: the best first, and the default. kind names the type of machine. notes say which were left
// out for a reason that the user can change.
func Replicas(kind string, r result.Result, limit time.Duration, share float64, seed uint64) (list []replica.Replica, notes []string, err error) {
	chosen := mostWithin(r, limit.Seconds(), share)
	if len(chosen) == 0 {
		return nil, nil, fmt.Errorf("the result of %s has no configuration with figures", kind)
	}
	made := make([]replica.Replica, len(chosen))
	errs := make([]error, len(chosen))
	parallel.For(len(chosen), func(i int) { made[i], errs[i] = replica.Of(kind, r, chosen[i], seed) })
	for i := range made {
		if errs[i] != nil {
			notes = append(notes, fmt.Sprintf("%s of %s is left out: %v.", chosen[i].Name, kind, errs[i]))
			err = cmp.Or(err, errs[i])
			continue
		}
		list = append(list, made[i])
	}
	if len(list) == 0 {
		return nil, nil, err
	}
	return list, notes, nil
}

// mostWithin chooses configurations by the highest throughput at which the measured percentile
// of a share keeps the limit. Those that keep it nowhere come last, by their throughput.
func mostWithin(r result.Result, limit, share float64) (chosen []result.Configuration) {
	type entry struct {
		c            result.Configuration
		within, most float64
	}
	var list []entry
	for _, c := range r.Configurations {
		e := entry{c: c}
		for _, p := range c.Points {
			rate := p.Values[measure.Throughput].Value
			e.most = max(e.most, rate)
			if x := percentile(p.Values, share); x > 0 && x <= limit {
				e.within = max(e.within, rate)
			}
		}
		if e.most > 0 {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b entry) int { return cmp.Or(cmp.Compare(b.within, a.within), cmp.Compare(b.most, a.most)) })
	for i, e := range list {
		if i < mostConfigurations || e.c.Default {
			chosen = append(chosen, e.c)
		}
	}
	return chosen
}

// percentile returns the measured percentile of a share; the 99th where that was not measured, and 0 without either.
func percentile(values map[measure.Metric]result.Estimate, share float64) float64 {
	for m, e := range values {
		if q, ok := m.Quantile(); ok && q == share {
			return e.Value
		}
	}
	return values[measure.LatencyP99].Value
}
