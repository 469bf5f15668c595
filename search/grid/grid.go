// Package grid is the exhaustive strategy. It visits every candidate of the space in its order,
// which keeps candidates of one engine process together, and seeks each one's best load. A budget
// that is too small for the space covers only its first part.
package grid

import (
	"tuner/search"
	"tuner/search/standings"
	"tuner/search/tour"
)

// New returns a tour through all candidates, which reads the ledger that its owner writes.
func New(s search.Settings, l *standings.Ledger, candidates *search.Candidates) *tour.Tour {
	n, _ := candidates.Len()
	return tour.NewLazy(s, l, search.PhaseSearch, n, candidates.Walk())
}
