package load

import (
	"testing"
	"time"
)

// With one writer and one reader at once, every value arrives once and in order, through blocks
// that are reused. The race detector can check it.
func TestPipeHandsOverEverything(t *testing.T) {
	t.Parallel()
	const n = 10_000
	p := newPipe[record]()
	go func() {
		for i := range n {
			p.append(record{end: time.Duration(i), outcome: completed})
		}
	}()
	next := time.Duration(0)
	for next < n {
		for r := range p.drain() {
			if r.end != next {
				t.Fatalf("record %d came, want %d", r.end, next)
			}
			next++
		}
	}
	for r := range p.drain() {
		t.Errorf("record %d came twice", r.end)
	}
}

// A reader that keeps up needs no memory, however many values pass.
func TestPipeUsesItsBlocksAgain(t *testing.T) { // not parallel: it counts allocations
	p := newPipe[record]()
	pass := func() {
		for range 100 {
			p.append(record{})
		}
		for range p.drain() {
		}
	}
	pass()
	pass()
	if n := testing.AllocsPerRun(100, pass); n > 0 {
		t.Errorf("100 values cost %v allocations", n)
	}
}
