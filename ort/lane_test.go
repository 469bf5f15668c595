package ort

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func testLane(t *testing.T) *Lane {
	t.Helper()
	l, err := NewLane()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// Runs on lanes give the outputs of their own inputs, also when lanes share a session.
func TestLanes(t *testing.T) {
	t.Parallel()
	s := testSession(t, "add_sub", SessionOptions{})
	const lanes, runs = 4, 50
	var group sync.WaitGroup
	for i := range lanes {
		p, l := testPlan(t, s, "sum"), testLane(t)
		group.Go(func() {
			for k := range runs {
				x := float32(100*i + k)
				if err := errors.Join(p.Gather(0, []int64{1, 4}, [][]byte{floats(x, 2, 3, 4)}), p.Gather(1, []int64{1, 4}, [][]byte{floats(1, 1, 1, 1)})); err != nil {
					t.Error(err)
					return
				}
				outputs, err := p.RunOn(l)
				if err != nil {
					t.Error(err)
					return
				}
				if d := cmp.Diff(floats(x+1, 3, 4, 5), outputs[0].Bytes()); d != "" {
					t.Errorf("lane %d, run %d (-want +got):\n%s", i, k, d)
				}
				outputs[0].Close()
			}
		})
	}
	group.Wait()
}

// A failed run on a lane is an error as on the caller's thread, and the next run works.
func TestLaneFails(t *testing.T) {
	t.Parallel()
	s := testSession(t, "add_sub", SessionOptions{})
	p, l := testPlan(t, s, "sum"), testLane(t)
	for _, c := range []struct {
		x, y int64 // rows; two rows and three cannot be added
		ok   bool
	}{{1, 1, true}, {2, 3, false}, {1, 1, true}} {
		if err := errors.Join(p.Gather(0, []int64{c.x, 4}, [][]byte{make([]byte, 16*c.x)}), p.Gather(1, []int64{c.y, 4}, [][]byte{make([]byte, 16*c.y)})); err != nil {
			t.Fatal(err)
		}
		outputs, err := p.RunOn(l)
		var failure *Error
		if (err == nil) != c.ok || err != nil && !errors.As(err, &failure) {
			t.Errorf("%d and %d rows: %v", c.x, c.y, err)
		}
		for i := range outputs {
			outputs[i].Close()
		}
	}
}

// A lane takes its thread and its descriptors with it.
func TestLaneEnds(t *testing.T) {
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip("the threads of a process are counted in Linux's /proc")
	}
	count := func(folder string) int {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	const lanes = 200
	threads, descriptors := count("/proc/self/task"), count("/proc/self/fd")
	for range lanes {
		l, err := NewLane()
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	// Other tests and Go's runtime may have begun a few threads meanwhile. A thread is gone from /proc shortly after its end.
	deadline := time.Now().Add(time.Minute)
	for count("/proc/self/task") >= threads+lanes/2 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if more := fmt.Sprint(count("/proc/self/task")-threads >= lanes/2, count("/proc/self/fd")-descriptors >= lanes/2); more != "false false" {
		t.Errorf("more threads, more descriptors after %d lanes: %s", lanes, more)
	}
}
