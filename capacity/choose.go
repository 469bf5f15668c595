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

// Replicas makes the replicas of a result's configurations that answer the most requests within the
// limit, the best first, and of the default. kind names the type of machine. notes say which were left
// out for a reason that the user can change.
func Replicas(kind string, r result.Result, limit time.Duration, seed uint64) (list []replica.Replica, notes []string, err error) {
	chosen := mostWithin(r, limit.Seconds())
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

// mostWithin chooses configurations by the highest throughput at which the measured 99th percentile
// keeps the limit. Those that keep it nowhere come last, by their throughput.
func mostWithin(r result.Result, limit float64) (chosen []result.Configuration) {
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
			if p99 := p.Values[measure.LatencyP99].Value; p99 > 0 && p99 <= limit {
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
