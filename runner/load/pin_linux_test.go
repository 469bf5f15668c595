package load

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Pin affects a whole process, so the test runs itself again in its own process.
func TestPin(t *testing.T) {
	t.Parallel()
	const child = "LOAD_TEST_PIN"
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	last := 0
	for cpu := range len(before) * 64 {
		if before.IsSet(cpu) {
			last = cpu
		}
	}
	if os.Getenv(child) != "" {
		if err := Pin([]int{last}); err != nil {
			t.Fatal(err)
		}
		checkPinned(t, last)
		return
	}
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPin$")
	run.Env = append(os.Environ(), child+"=1")
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, cpus := range [][]int{nil, {last, last}, {1000}, {1 << 20}} {
		if err := Pin(cpus); err == nil || !strings.Contains(err.Error(), "CPUs") {
			t.Errorf("pinned to %v: %v", cpus, err)
		}
	}
}

// checkPinned checks every thread.
func checkPinned(t *testing.T, cpu int) {
	t.Helper()
	var want unix.CPUSet
	want.Set(cpu)
	if n, err := pinThreads(&want, map[int]bool{}); err != nil || n < 2 || runtime.GOMAXPROCS(0) != 1 {
		t.Errorf("%d threads, %v, %d at once", n, err, runtime.GOMAXPROCS(0))
	}
	done := make(chan unix.CPUSet)
	for range 4 {
		go func() {
			runtime.LockOSThread() // so that each goroutine has its own thread
			var got unix.CPUSet
			_ = unix.SchedGetaffinity(0, &got) // after an error got stays empty
			done <- got
		}()
	}
	for range 4 {
		if got := <-done; got != want {
			t.Errorf("a thread may run on %d CPUs", got.Count())
		}
	}
}
