package search_test

import (
	"testing"

	"tuner/search"
)

func TestAdopt(t *testing.T) {
	t.Parallel()
	space := search.Space{
		Knobs: []search.Knob{knob("precision", "fp32", "int8"), knob("instance_count", "1", "2"), knob("max_batch_size", "4", "8"), knob("max_queue_delay", "0us", "100us")},
		Load:  search.LoadAxis{Levels: []float64{1}, BatchSize: 1},
		Facts: search.Facts{
			Cores: 4, Batching: true, Precisions: []string{"fp32", "int8"},
			Base: map[string]search.Value{"precision": "fp32", "instance_count": "2", "max_batch_size": "4", "max_queue_delay": "0us", "allow_spinning": "true"},
		},
	}
	check := func(want string, settings ...search.Setting) {
		t.Helper()
		got := "none"
		if c, ok := space.Adopt(search.NewCandidate(settings...)); ok {
			got = c.Key()
		}
		if got != want {
			t.Errorf("%v is %q here, want %q", settings, got, want)
		}
	}
	set := func(knob string, value search.Value) search.Setting { return search.Setting{Knob: knob, Value: value} }
	check("default")
	// Knobs that the other space does not set have the default's values. The order is this space's.
	check("precision=fp32 instance_count=1 max_batch_size=8 max_queue_delay=0us", set("max_batch_size", "8"), set("instance_count", "1"))
	check("precision=int8 instance_count=2 max_batch_size=4 max_queue_delay=0us", set("precision", "int8"))
	// A knob that only the other space has must have the default's value.
	check("precision=fp32 instance_count=1 max_batch_size=4 max_queue_delay=0us", set("allow_spinning", "true"), set("instance_count", "1"))
	check("none", set("allow_spinning", "false"), set("instance_count", "1"))
	check("none", set("session.x", "1"))
	// A candidate that is folded here is replaced by its canonical one. One that is illegal here
	// has no equal.
	check("precision=fp32 instance_count=2 max_batch_size=1 max_queue_delay=0us", set("max_batch_size", "1"), set("max_queue_delay", "100us"))
	check("none", set("precision", "fp16"))
	// Without the knob, XNNPACK's threads do not spin, unlike the default's.
	space.Knobs = append(space.Knobs, knob("execution_provider", "cpu", "xnnpack"))
	space.Facts.Base["execution_provider"] = "cpu"
	check("none", set("allow_spinning", "true"), set("execution_provider", "xnnpack"))
}
