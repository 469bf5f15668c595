package plan_test

import (
	"testing"

	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

func TestStrategiesConform(t *testing.T) {
	t.Parallel()
	for _, name := range plan.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			searchtest.Conform(t, func(s search.Settings) (search.Strategy, error) { return plan.New(name, s) })
		})
	}
}
