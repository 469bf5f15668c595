package buffers

import "testing"

// A buffer has the requested length and the next power of two as capacity. It can be reused with
// another length.
func TestPool(t *testing.T) {
	t.Parallel()
	p := &Pool{}
	for length, want := range map[int]int{0: 1 << 10, 1: 1 << 10, 1 << 10: 1 << 10, 1<<10 + 1: 1 << 11, 40 << 10: 64 << 10, 1 << 26: 1 << 26, 1<<26 + 1: 1<<26 + 1} {
		b := p.Get(length)
		if len(*b) != length || cap(*b) != want {
			t.Errorf("%d: length %d and capacity %d, want %d", length, len(*b), cap(*b), want)
		}
		p.Put(b)
		if again := p.Get(length); len(*again) != length || cap(*again) != want {
			t.Errorf("%d: again length %d and capacity %d, want %d", length, len(*again), cap(*again), want)
		}
	}
	foreign := make([]byte, 3000)
	p.Put(&foreign)
	if b := p.Get(3000); cap(*b) != 4096 {
		t.Errorf("a foreign buffer of %d bytes was kept", cap(*b))
	}
}
