package search_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
)

func TestCheckOfAnEvent(t *testing.T) {
	t.Parallel()
	event := func(duration, elapsed time.Duration, load measure.Load) search.Event {
		windows := []measure.Window{{Duration: duration, Requests: 1, Inferences: 1}, {Duration: duration}}
		return search.Event{Trial: search.Trial{Load: load}, Measurement: measure.Measurement{Windows: windows}, Elapsed: elapsed}
	}
	eight := measure.Load{Concurrency: 8, BatchSize: 1}
	check := func(name string, e search.Event, isRefused bool) {
		t.Helper()
		for _, err := range []error{e.Check(), search.Earlier{Events: []search.Event{e}}.Check()} {
			if (err != nil) != isRefused {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	check("as measured", event(time.Second, 3*time.Second, eight), false)
	check("a rate", event(time.Second, 3*time.Second, measure.Load{RequestRate: 0.5}), false)
	check("clocks that differ", event(2*time.Second, 3*time.Second, eight), false)
	check("a window longer than the campaign", event(time.Hour, 3*time.Second, eight), true)
	// accepted from anyone who edits both
	check("the longest windows", event(math.MaxInt64, math.MaxInt64-1, eight), false)
	check("the longest windows of a short campaign", event(math.MaxInt64, time.Hour, eight), true)
	check("before the campaign", event(0, -1, eight), true)
	check("below no load", event(time.Second, 3*time.Second, measure.Load{Concurrency: -1}), true)
	check("two inferences each", event(time.Second, 3*time.Second, measure.Load{Concurrency: 1, BatchSize: 2}), true)
	check("two loads", event(time.Second, 3*time.Second, measure.Load{Concurrency: 1, RequestRate: 1}), true)
}

// A setting without its name is an error, since ignoring it would give another candidate.
func TestCandidateOfUnknownFields(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`[{"knoc":"a","value":"1"}]`, `[{"knob":"a","valve":"1"}]`, `[{"knob":"","value":"1"}]`, `[{"value":"1"}]`, `[{"knob":"a","value":"1"},{}]`} {
		var c search.Candidate
		if err := json.Unmarshal([]byte(text), &c); err == nil {
			t.Errorf("%s is read as %s", text, c)
		}
	}
}
