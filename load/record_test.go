package load

import (
	"testing"
	"time"
)

// One writer and one reader at once: every record arrives once, in order. The race detector looks on.
func TestRecordLogHandsOverEverything(t *testing.T) {
	t.Parallel()
	const n = 10_000
	log := newRecordLog()
	go func() {
		for i := range n {
			log.append(record{end: time.Duration(i), outcome: completed})
		}
	}()
	next := time.Duration(0)
	for next < n {
		for r := range log.drain() {
			if r.end != next {
				t.Fatalf("record %d came, want %d", r.end, next)
			}
			next++
		}
	}
	for r := range log.drain() {
		t.Errorf("record %d came twice", r.end)
	}
}
