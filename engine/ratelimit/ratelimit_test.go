package ratelimit

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func claim(t *testing.T, l *Limiter, priority uint32, needs ...Need) *Claim {
	t.Helper()
	c, err := l.Add(needs, priority, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Without capacities, the largest need is the capacity: two instances that need all of it take
// turns.
func TestLargestNeedIsTheCapacity(t *testing.T) {
	t.Parallel()
	l := New(nil)
	all := []*Claim{claim(t, l, 1, Need{Name: "R", Count: 2}), claim(t, l, 1, Need{Name: "R", Count: 2}),
		claim(t, l, 1, Need{Name: "R", Count: 1}), claim(t, l, 1, Need{Name: "R", Count: 1})}
	var used, most atomic.Int64
	var group sync.WaitGroup
	for _, c := range all {
		group.Go(func() {
			for range 200 {
				c.Acquire()
				n := used.Add(int64(c.needs[key{name: "R"}]))
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				used.Add(-int64(c.needs[key{name: "R"}]))
				c.Release()
			}
		})
	}
	group.Wait()
	if most.Load() != 2 {
		t.Errorf("%d of R were in use at the same time, want 2", most.Load())
	}
}

// The order in which waiting claims are served: least executions × priority first, then the one that
// has waited longest.
func TestOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(nil)
		need := Need{Name: "R", IsGlobal: true, Count: 1}
		holder := claim(t, l, 1, need)
		names := map[string]*Claim{"rare": claim(t, l, 3, need), "usual": claim(t, l, 1, need), "zero": claim(t, l, 0, need)}
		for name, n := range map[string]uint64{"rare": 1, "usual": 2, "zero": 2} { // weights 3, 2 and 2
			names[name].executions = n
		}
		holder.Acquire()
		var mu sync.Mutex
		var served []string
		for _, name := range []string{"rare", "zero", "usual"} {
			go func() {
				names[name].Acquire()
				mu.Lock()
				served = append(served, name)
				mu.Unlock()
				names[name].Release()
			}()
			synctest.Wait() // it waits now
		}
		holder.Release()
		synctest.Wait()
		if want := []string{"zero", "usual", "rare"}; !slices.Equal(served, want) {
			t.Errorf("served %v, want %v", served, want)
		}
	})
}

// A claim that needs much is not overtaken by ones that need little.
func TestLargeClaimIsNotStarved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New([]Capacity{{Name: "R", Count: 2, Device: AllDevices}})
		small, other, large := claim(t, l, 1, Need{Name: "R", Count: 1}), claim(t, l, 1, Need{Name: "R", Count: 1}), claim(t, l, 1, Need{Name: "R", Count: 2})
		small.Acquire()
		var hasLarge, hasOther atomic.Bool
		go func() { large.Acquire(); hasLarge.Store(true) }()
		synctest.Wait()
		other.executions = 1 // it comes after the large one
		go func() { other.Acquire(); hasOther.Store(true) }()
		synctest.Wait()
		if hasLarge.Load() || hasOther.Load() {
			t.Error("a claim was served although the first one in the queue cannot be")
		}
		small.Release()
		synctest.Wait()
		if !hasLarge.Load() || hasOther.Load() {
			t.Errorf("large %v, other %v; want only the large one", hasLarge.Load(), hasOther.Load())
		}
		large.Release()
		synctest.Wait()
		if !hasOther.Load() {
			t.Error("the other one is never served")
		}
	})
}

// Resources of a device are separate from those of another one.
func TestDevices(t *testing.T) {
	t.Parallel()
	l := New(nil)
	a, err := l.Add([]Need{{Name: "R", Count: 1}}, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Add([]Need{{Name: "R", Count: 1}}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	a.Acquire()
	b.Acquire() // would block for ever
	a.Release()
	b.Release()
}

// Needs that can never be met are refused, in Triton's words, and leave nothing behind.
func TestRefused(t *testing.T) {
	t.Parallel()
	limited := New([]Capacity{{Name: "R", Count: 3, Device: AllDevices}, {Name: "S", Count: 5, Device: 1}})
	for _, c := range []struct {
		need   Need
		device int
		want   string
	}{
		{Need{Name: "R", Count: 4}, 0, `Resource count for "R" is limited to 3 which will prevent scheduling of one or more model instances, the minimum required count is 4`},
		{Need{Name: "X", Count: 1}, 0, `Resource count for "X" is limited to 0 which will prevent scheduling of one or more model instances, the minimum required count is 1`},
		{Need{Name: "S", Count: 1}, 0, `Resource count for "S" is limited to 0 which will prevent scheduling of one or more model instances, the minimum required count is 1`},
		{Need{Name: "S", Count: 5}, 1, ""},
		{Need{Name: "R", Count: 3}, 0, ""},
		{Need{Name: "R", Count: 3, IsGlobal: true}, 0, `Resource "R" is present as both global and device-specific resource in the model configuration.`},
	} {
		got := ""
		if _, err := limited.Add([]Need{c.need}, 1, c.device); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: got %q, want %q", c.need, got, c.want)
		}
	}
}

// A claim that is removed no longer counts for the capacity, and a nil one costs nothing.
func TestRemove(t *testing.T) {
	t.Parallel()
	l := New(nil)
	c := claim(t, l, 1, Need{Name: "R", Count: 7})
	c.Remove()
	c.Remove()
	if got := l.limits[key{name: "R"}]; got != 0 {
		t.Errorf("capacity %d, want 0", got)
	}
	none, err := (*Limiter)(nil).Add([]Need{{Name: "R", Count: 1}}, 1, 0)
	if none != nil || err != nil {
		t.Errorf("no limiter: got %v, %v", none, err)
	}
	none.Acquire()
	none.Release()
	none.Remove()
}
