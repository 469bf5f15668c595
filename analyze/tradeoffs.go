package analyze

import "tuner/search/standings"

// Tradeoffs lists configurations that satisfy all constraints except one, among the points that are
// compared. It is empty if something satisfies all constraints.
func (r Result) Tradeoffs() standings.Tradeoffs {
	if _, ok := r.Nearest(); !ok {
		return nil
	}
	return r.Verdict.Tradeoffs
}
