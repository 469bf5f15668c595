package arrivals

import (
	"testing"
	"time"
)

// A course has whole periods: enough of short ones, parts of a long one.
func TestCourse(t *testing.T) {
	t.Parallel()
	onOff := Pattern{Kind: OnOffKind, On: time.Second, Off: time.Second}
	trace, err := NewTrace([]time.Duration{0, time.Second, 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		p    Pattern
		rate float64
		most int
		want int
	}{
		{onOff, 100, 20_000, 2000}, // 200 in a period, ten times
		{onOff, 150, 20_000, 2100}, // 300, seven times
		{onOff, 5000, 20_000, 10_000},
		{onOff, 50_000, 20_000, 20_000}, // ten parts of 2,000 out of 100,000
		{Pattern{Kind: TraceKind, Trace: &trace}, 1, 20_000, 2001},
		{Pattern{Kind: GammaKind, CV: 3}, 1, 20_000, 10_000},
	} {
		s, n, err := c.p.Course(c.rate, 1, c.most)
		if err != nil || n != c.want {
			t.Errorf("%s at %g/s: %d requests, %v, want %d", c.p, c.rate, n, err, c.want)
			continue
		}
		ascends(t, s)
	}
	if _, _, err := (Pattern{Kind: TraceKind}).Course(1, 1, 100); err == nil {
		t.Error("a trace that was not read has a course")
	}
}
