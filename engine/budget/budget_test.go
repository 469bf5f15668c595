package budget

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// An account may hold at most as much as stays free, so that there is always room for one more
// account.
func TestShares(t *testing.T) {
	t.Parallel()
	b := New(1200)
	var all []*Account
	for k := range 5 {
		a := b.Open(nil)
		all = append(all, a)
		n := 0
		for a.Take(1) {
			n++
		}
		// Each takes half of the free bytes: 600, 300, 150, 75, 37. The first ones keep theirs.
		if want := []int{600, 300, 150, 75, 37}[k]; n != want {
			t.Errorf("account %d may hold %d bytes, want %d", k, n, want)
		}
		if !a.IsFull() && k < 4 { // 37 of the last 75 are held, so one is left over
			t.Errorf("account %d is not full", k)
		}
	}
	if got := b.Used(); got != 600+300+150+75+37 {
		t.Errorf("%d bytes are used", got)
	}
	for k, a := range all {
		a.Give([]int{600, 300, 150, 75, 37}[k])
		a.Close()
	}
	if b.Used() != 0 || len(b.accounts) != 0 {
		t.Errorf("at the end: %d bytes, %d accounts", b.Used(), len(b.accounts))
	}
}

// A refusal leaves nothing behind. Concurrent holders never exceed the maximum.
func TestConcurrentHolders(t *testing.T) {
	t.Parallel()
	b := New(1000)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			a := b.Open(nil)
			defer a.Close()
			for range 10_000 {
				if a.Take(90) {
					if used := b.Used(); used > 1000+8*90 { // others may be about to be refused
						t.Errorf("%d bytes are used", used)
					}
					a.Give(90)
				}
			}
		})
	}
	group.Wait()
	if b.Used() != 0 {
		t.Errorf("%d bytes are left", b.Used())
	}
}

// A nil account has no bound.
func TestNoAccount(t *testing.T) {
	t.Parallel()
	var a *Account
	if !a.Take(1<<40) || a.IsFull() {
		t.Error("refused")
	}
	a.Give(1 << 40)
	a.Owe(1)
}

// Bytes that cannot be refused end the account that holds the most. They do so once, and end no
// other account while its bytes are being given back.
func TestForceEndsTheLargest(t *testing.T) {
	t.Parallel()
	b := New(800) // 900 with the reserve
	ended := map[string]int{}
	open := func(name string) *Account { return b.Open(func() { ended[name]++ }) }
	large, small := open("large"), open("small")
	large.Force(450)
	if len(ended) != 0 {
		t.Errorf("450 held of 800: %v", ended)
	}
	small.Force(300) // 750 are used, and 300 more of the same kind
	small.Force(10)
	if ended["large"] != 1 || ended["small"] != 0 {
		t.Errorf("ended: %v, want the large one, once", ended)
	}
	large.Give(450)
	large.Close()
	small.Force(140)
	if ended["small"] != 0 {
		t.Errorf("450 held of 800: %v", ended)
	}
	small.Force(1)
	small.Force(1)
	if ended["small"] != 1 {
		t.Errorf("ended: %v, want the one that is left, once", ended)
	}
}

// A client that leaves its waiting bytes untouched is ended when another client is refused. A
// client that moves is not, nor is one whose bytes wait for the server.
func TestRefusalEndsTheIdle(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		owed, ends bool
		move       func(*Account)
	}{
		"idle":               {true, true, nil},
		"moves":              {true, false, (*Account).Moved},
		"waits for a result": {false, false, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := New(1000)
			ends := 0
			holder, other := b.Open(func() { ends++ }), b.Open(func() { t.Error("the one that was refused is ended") })
			holder.Take(500)
			if tc.owed {
				holder.Owe(500)
			}
			for range 13 { // the first check finds that it has moved
				if other.Take(300) {
					t.Fatal("it was not refused")
				}
				time.Sleep(patience / 10)
				if tc.move != nil {
					tc.move(holder)
				}
			}
			if want := map[bool]int{true: 1}[tc.ends]; ends != want {
				t.Errorf("%s: ended %d times, want %d", name, ends, want)
			}
		})
	}
}

// Garbage is collected when there is much of it, not for each piece.
func TestDiscard(t *testing.T) { // not parallel: it counts the process's collections
	a := New(16 * 100 << 20).Open(nil)
	forced := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumForcedGC
	}
	before := forced()
	for range 35 {
		a.Discard(10 << 20) // 350 MiB; 100 MiB are allowed
	}
	if n := forced() - before; n != 3 {
		t.Errorf("%d collections, want 3", n)
	}
}
