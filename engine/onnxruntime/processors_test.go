package onnxruntime

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Go's processors follow the runs, not the sessions. Each change stops the process, so changes are
// rare.
func TestProcessorsFollowRuns(t *testing.T) {
	t.Parallel()
	var set []int
	p := &processors{least: 2, set: func(n int) { set = append(set, n) }}
	p.now.Store(2)
	check := func(what string, want ...int) {
		t.Helper()
		if d := cmp.Diff(want, set); d != "" {
			t.Errorf("%s: GOMAXPROCS was set (-want +got):\n%s", what, d)
		}
		set = nil
	}
	runs := func(times, atATime int) {
		for range times {
			for range atATime {
				p.enter()
			}
			for range atATime {
				p.leave()
			}
		}
	}
	runs(5*reviewed, 1)
	check("one session in use") // two processors are enough, whatever else is open
	runs(5*reviewed, 2)
	check("two in use", 3)
	for range 20 {
		runs(1, 2)
		runs(reviewed/2, 1)
	}
	check("two now and then")
	runs(1, 5)
	check("a burst", 4, 5, 6)
	runs(2*reviewed, 1)
	check("after the burst", 2)
}
