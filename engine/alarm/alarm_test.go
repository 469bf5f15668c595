package alarm

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// ring counts calls.
type ring chan struct{}

func (r ring) call() { r <- struct{}{} }

// heard waits for a call, and reports whether one came within the time.
func (r ring) heard(within time.Duration) bool {
	select {
	case <-r:
		return true
	case <-time.After(within):
		return false
	}
}

func TestAlarm(t *testing.T) {
	t.Parallel()
	r := make(ring, 100)
	a := New(r.call)
	defer a.Close()
	if r.heard(20 * time.Millisecond) {
		t.Error("an alarm that was not set calls")
	}
	for _, d := range []time.Duration{0, time.Nanosecond, 100 * time.Microsecond, 5 * time.Millisecond, worthwhile + time.Millisecond} {
		begin := time.Now()
		a.Reset(d)
		if !r.heard(time.Minute) {
			t.Fatalf("no call after %v", d)
		}
		if took := time.Since(begin); took < d {
			t.Errorf("called after %v, want %v at least", took, d)
		}
		a.Stop()
		for r.heard(20 * time.Millisecond) { // the call of the other timer
		}
	}
	a.Reset(50 * time.Millisecond)
	a.Reset(time.Hour)
	if r.heard(150 * time.Millisecond) {
		t.Error("it calls as it was set before")
	}
	a.Reset(50 * time.Millisecond)
	a.Stop()
	if r.heard(150 * time.Millisecond) {
		t.Error("it calls although it was stopped")
	}
}

// The kernel's timer calls by itself: Go's is set to an hour here.
func TestKernelTimer(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the kernel's timer is Linux's")
	}
	r := make(ring, 100)
	k := newKernelTimer(r.call)
	if k == nil {
		t.Fatal("there is none")
	}
	defer k.close()
	for range 3 {
		k.set(100 * time.Microsecond)
		if !r.heard(time.Minute) {
			t.Fatal("no call")
		}
	}
	k.set(50 * time.Millisecond)
	k.set(0)
	if r.heard(150 * time.Millisecond) {
		t.Error("it calls although it was disarmed")
	}
}

// A closed alarm holds no descriptor and no goroutine. It may be set and closed again.
func TestClose(t *testing.T) {
	before := descriptors(t)
	for range 50 {
		a := New(func() {})
		a.Reset(time.Millisecond)
		a.Close()
		a.Reset(time.Millisecond)
		a.Stop()
		a.Close()
	}
	if after := descriptors(t); after > before+10 {
		t.Errorf("%d descriptors, before %d", after, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("descriptors are counted in /proc")
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// BenchmarkLate measures the delay of a call, with Go's timer alone and with both timers.
func BenchmarkLate(b *testing.B) {
	const wait = 200 * time.Microsecond
	b.Run("timer=go", func(b *testing.B) {
		r := make(ring, 1)
		timer := time.AfterFunc(time.Hour, r.call)
		defer timer.Stop()
		late(b, r, wait, func() { timer.Reset(wait) })
	})
	b.Run("timer=alarm", func(b *testing.B) {
		r := make(ring, 2)
		a := New(func() {
			select {
			case r <- struct{}{}:
			default:
			}
		})
		defer a.Close()
		late(b, r, wait, func() { a.Reset(wait) })
	})
}

func late(b *testing.B, r ring, wait time.Duration, set func()) {
	b.Helper()
	sum := time.Duration(0)
	for b.Loop() {
		begin := time.Now()
		set()
		for time.Since(begin) < wait { // an earlier call came from the other timer, in the turn before
			<-r
		}
		sum += time.Since(begin) - wait
	}
	b.ReportMetric(float64(sum.Microseconds())/float64(b.N), "µs-late/op")
}
