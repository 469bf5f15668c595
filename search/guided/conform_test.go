package guided_test

import (
	"testing"

	"tuner/search"
	"tuner/search/guided"
	"tuner/search/plan"
	"tuner/search/searchtest"
	"tuner/search/standings"
)

// The strategy conforms with requests of several kinds, which have windows of their own in service trials.
// TestStrategiesConform of package plan is about requests of one kind.
func TestConformsWithKinds(t *testing.T) {
	t.Parallel()
	searchtest.Conform(t, searchtest.Small(), func(s search.Settings) (search.Strategy, error) {
		s.Space.Facts.Mix = []search.Kind{{Share: 0.6, Elements: 16}, {Share: 0.3, Elements: 64}, {Share: 0.1, Elements: 256}}
		return plan.Around(s, func(l *standings.Ledger, candidates *search.Candidates) plan.Explorer {
			return guided.New(s, l, candidates)
		})
	})
}
