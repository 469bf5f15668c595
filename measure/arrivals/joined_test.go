package arrivals

import (
	"slices"
	"testing"
	"time"
)

// The schedule has the warm-up and what follows it, each as far apart as given, and does not end.
func TestJoined(t *testing.T) {
	t.Parallel()
	s := Joined([]time.Duration{1, 4}, []time.Duration{10, 12, 20})
	var got []time.Duration
	for range 7 {
		got = append(got, s.Next())
	}
	if want := []time.Duration{1, 4, 4, 6, 14, 14 + time.Second, 14 + 2*time.Second}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
