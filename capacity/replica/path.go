package replica

import (
	"slices"

	"tuner/measure"
	"tuner/report/result"
	"tuner/search/queuesim"
)

// pathWithin returns the path of a configuration whose lone requests spend a time outside of their instance, in s; 0:
// unknown. A lone request takes the most processor time there, so the path is no longer than that (queuesim's path).
//
// The result's path can be: it is the processor time that the instances do not account for. Two hardware threads of one
// core slow each other down without waiting, and so do instances that share a cache. Their time is then taken for the
// path's, although it is in the times of crowded batches.
func pathWithin(outside, path float64) float64 {
	if outside == 0 {
		return path
	}
	return min(path, outside)
}

// pathOf returns the processor time that a request of a result takes outside of its instance, in s; 0: unknown. It
// is the same for all configurations: the search's, or else the least that the explained ones show at their best
// loads.
func pathOf(r result.Result, cores int) float64 {
	if r.Explanation == nil {
		return 0
	}
	least := 0.0
	for _, s := range r.Explanation.Subjects {
		if k := s.ServiceCurve; k != nil && k.Path > 0 && k.Path < longestBatch {
			return k.Path
		}
		if path, ok := shownPath(r, s, cores); ok && (least == 0 || path < least) {
			least = path
		}
	}
	return least
}

// shownPath returns the path that a configuration shows at its best load. Its instances' times there include that
// others take the cores, so it is rather too short.
func shownPath(r result.Result, s result.Subject, cores int) (float64, bool) {
	b := s.Breakdown
	if b == nil || !(b.EngineCPU > 0 && b.ClientCPU > 0) {
		return 0, false
	}
	i := slices.IndexFunc(r.Configurations, func(c result.Configuration) bool { return c.Name == s.Name })
	if i < 0 {
		return 0, false
	}
	c := r.Configurations[i]
	k := slices.IndexFunc(c.Points, func(p result.Point) bool { return p.Load == s.Load })
	if k < 0 {
		return 0, false
	}
	requests := c.Points[k].Values[measure.Throughput].Value / float64(max(1, s.Load.BatchSize))
	path, ok := queuesim.PathOf(b.EngineCPU+b.ClientCPU, b.Busy*float64(Threads(c.Setup, cores)), requests)
	return path, ok && path < longestBatch
}
