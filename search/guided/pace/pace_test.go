package pace

import (
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/tuning"
)

// An overloaded server answers for long after the last window. The next trial will take that time too.
func TestWaitForLastAnswersIsExpected(t *testing.T) {
	t.Parallel()
	p := New(search.Budget{Time: time.Minute}, tuning.Service{})
	p.Record(search.Event{Measurement: measure.Measurement{Times: measure.Times{WarmUp: time.Second, Windows: 5 * time.Second, Drain: 3 * time.Second}}})
	if got, want := p.WarmUp(), 4*time.Second; got != want {
		t.Errorf("%v outside of windows, want %v", got, want)
	}
}
