package search_test

import (
	"testing"

	"tuner/search"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	check := func(want string, settings ...search.Setting) {
		t.Helper()
		if got := search.NewCandidate(settings...).Describe(); got != want {
			t.Errorf("Describe() = %q, want %q", got, want)
		}
	}
	check("default")
	check("2 instances × 1 thread, batch 16",
		search.Setting{Knob: search.KnobPrecision, Value: "fp32"},
		search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"},
		search.Setting{Knob: search.KnobInstanceCount, Value: "2"},
		search.Setting{Knob: search.KnobMaxBatchSize, Value: "16"},
		search.Setting{Knob: search.KnobMaxQueueDelay, Value: "0us"})
	check("1 instance × all cores, int8, no batching",
		search.Setting{Knob: search.KnobPrecision, Value: "int8"},
		search.Setting{Knob: search.KnobIntraOpThreads, Value: "0"},
		search.Setting{Knob: search.KnobInstanceCount, Value: "1"},
		search.Setting{Knob: search.KnobMaxBatchSize, Value: "0"})
	check("batch 8, delay 100 µs, preferred [4,8]",
		search.Setting{Knob: search.KnobMaxBatchSize, Value: "8"},
		search.Setting{Knob: search.KnobMaxQueueDelay, Value: "100us"},
		search.Setting{Knob: search.KnobPreferredBatchSize, Value: "[4,8]"})
	for value, want := range map[search.Value]string{"999us": "999 µs", "1000us": "1 ms", "1500us": "1.5 ms", "20000us": "20 ms", "2000000us": "2 s"} {
		check("delay "+want, search.Setting{Knob: search.KnobMaxQueueDelay, Value: value})
	}
	check("precision=fp32", search.Setting{Knob: search.KnobPrecision, Value: "fp32"})
}
