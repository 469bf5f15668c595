package hostpolicy

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// onThread runs f on a new thread, which ends with it.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

func TestBind(t *testing.T) {
	t.Parallel()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	core := 0
	for !all.IsSet(core) {
		core++
	}
	onThread(func() {
		if err := (Policy{Cores: []int{core}, Node: NoNode}).Bind(); err != nil {
			t.Error(err)
		}
		var got unix.CPUSet
		if err := unix.SchedGetaffinity(0, &got); err != nil || got.Count() != 1 || !got.IsSet(core) {
			t.Errorf("%v: bound to %d cores, want core %d alone", err, got.Count(), core)
		}
		if n := Cores(); n != 1 {
			t.Errorf("%d cores, want 1", n)
		}
	})
	onThread(func() {
		if err := (Policy{Cores: []int{maxCores - 1}, Node: NoNode}).Bind(); err == nil || !strings.HasPrefix(err.Error(), "Unable to set NUMA thread affinity: ") {
			t.Errorf("core that does not exist: got %v", err)
		}
	})
	onThread(func() {
		if err := (Policy{Name: "far", Node: maxNodes - 1}).Bind(); err == nil || !strings.Contains(err.Error(), "no NUMA node 63") {
			t.Errorf("node that does not exist: got %v", err)
		}
	})
	onThread(func() {
		if err := Any().Bind(); err != nil {
			t.Errorf("no policy: %v", err)
		}
	})
}
