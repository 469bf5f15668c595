package guided_test

import (
	"testing"

	"tuner/search"
	"tuner/search/guided"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

func TestConforms(t *testing.T) {
	t.Parallel()
	searchtest.Conform(t, searchtest.Small(), func(s search.Settings) (search.Strategy, error) {
		return plan.Around(s, func(l *search.Ledger, candidates *search.Candidates) plan.Explorer {
			return guided.New(s, l, candidates)
		})
	})
}
