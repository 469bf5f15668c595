// Package grid is the exhaustive strategy: every candidate of the space in its order, which keeps candidates of one engine
// process together, each at its best load. With a budget that is smaller than the space it covers the first part only.
package grid

import "tuner/search"

// New returns a tour through all candidates, which reads the ledger that its owner writes.
func New(s search.Settings, l *search.Ledger, candidates *search.Candidates) *search.Tour {
	n, _ := candidates.Len()
	return search.NewLazyTour(s, l, search.PhaseSearch, n, candidates.Walk())
}
