package analyze

import "tuner/search"

// Tradeoffs are what would do if a single constraint gave, of what was measured where configurations are compared; none where something
// satisfies all constraints.
func (r Result) Tradeoffs() search.Tradeoffs {
	if _, ok := r.Nearest(); !ok {
		return nil
	}
	return r.Verdict.Tradeoffs
}
