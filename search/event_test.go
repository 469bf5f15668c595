package search_test

import (
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
)

func TestMiddle(t *testing.T) {
	t.Parallel()
	check := func(name string, want int, starts ...int) {
		t.Helper()
		e := search.Event{Elapsed: 50 * time.Second}
		for _, s := range starts {
			w := measure.Window{Start: time.Duration(s) * time.Second, Duration: 2 * time.Second}
			e.Measurement.Windows = append(e.Measurement.Windows, w)
		}
		if at := e.Middle(); at != time.Duration(want)*time.Second {
			t.Errorf("%s: %v, want %d s", name, at, want)
		}
	}
	check("in turns", 24, 10, 20, 39)            // 11, 21 and 40 s
	check("one after the other", 43, 40, 42, 44) // 40 to 46 s
	check("unknown starts", 47, 0, 0, 0)         // the last 6 s
	check("the first window of a campaign", 49, 0)
	check("no windows", 50)
}
