package guided

import (
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
)

func TestMiddle(t *testing.T) {
	t.Parallel()
	window := func(start int) measure.Window {
		return measure.Window{Start: time.Duration(start) * time.Second, Duration: 2 * time.Second}
	}
	e := search.Event{Elapsed: 50 * time.Second, Measurement: measure.Measurement{Windows: []measure.Window{window(10), window(20), window(36)}}}
	if at := middle(e, 6); at != 47 {
		t.Errorf("one after the other: %v s, want the middle of the last 6 s", at)
	}
	e.Trial.Block = 1
	if at := middle(e, 6); at != 23 { // 11, 21 and 37 s
		t.Errorf("in turns: %v s, want 23 s", at)
	}
	e.Measurement.Windows = nil
	if at := middle(e, 0); at != 50 {
		t.Errorf("without windows: %v s", at)
	}
}
