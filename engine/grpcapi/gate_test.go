package grpcapi

import (
	"errors"
	"testing"
	"testing/synctest"
)

// Nothing is looked at before enough was read; then garbage is collected first, and only a heap that stays full ends the
// connection.
func TestGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		heap, garbage, looks := uint64(0), uint64(0), 0
		g := &gate{max: 100, heap: func() uint64 { looks++; return heap + garbage }, free: func() { garbage = 0 }}
		pass := func(name string, n int, want error, wantLooks int) {
			t.Helper()
			looks = 0
			if err := g.pass(n); !errors.Is(err, want) || looks != wantLooks {
				t.Errorf("%s: %v after %d looks at the heap, want %v after %d", name, err, looks, want, wantLooks)
			}
		}
		heap = 200
		pass("little was read", measureEvery-1, nil, 0)
		heap, garbage = 90, 20
		pass("garbage fills the heap", 1, nil, 2)
		pass("little was read again", 1, nil, 0)
		heap = 101
		rounds := int(gatePatience/gatePause) + 2 // the first one at 0, the last one past the end
		pass("full", measureEvery, errHeapFull, 2*rounds)
		heap = 100
		pass("room again", 0, nil, 1)
	})
}

// The connections of a front end and the compressors, which are the process's, go through one gate.
func TestMaxHeap(t *testing.T) { // not parallel: the compressors' gate is that of the front end that was made last
	for given, want := range map[int64]uint64{0: DefaultMaxHeap, 5 << 30: 5 << 30} {
		f := New(nil, Options{MaxHeap: given})
		defer f.grpc.Stop()
		if f.gate.max != want || decompression.Load() != f.gate {
			t.Errorf("%d: the gate closes at %d, want %d; it is the compressors': %v", given, f.gate.max, want, decompression.Load() == f.gate)
		}
	}
}
