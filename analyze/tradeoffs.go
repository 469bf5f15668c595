package analyze

import "tuner/search"

// Tradeoffs are what would do if a single constraint gave, of what was measured where configurations are compared; none where something
// satisfies all constraints.
func (r Result) Tradeoffs() search.Tradeoffs {
	nearest, ok := r.Nearest()
	if !ok {
		return nil
	}
	var list search.Tradeoffs
	for _, c := range r.Configs {
		for _, p := range c.Points {
			if c.CurveOnly || r.At != nil && !isAt(p.Load, *r.At) || !r.AreComparable(*nearest.Best, p) {
				continue
			}
			list = list.Add(search.Standing{Candidate: c.Candidate, Load: p.Load, Point: p.found()})
		}
	}
	return list
}
