package load

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pin restricts all current and future threads of this process to the listed CPUs. It sets
// GOMAXPROCS to their number. Call it before there is a load. The error names the CPUs that the
// system did not grant.
func Pin(cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu) // a CPU beyond the set is ignored here and found missing below
	}
	if len(cpus) == 0 || set.Count() != len(cpus) {
		return fmt.Errorf("cannot pin the load generator to CPUs %v: each must be listed once, and exist", cpus)
	}
	for pinned := map[int]bool{}; ; {
		fresh, err := pinThreads(&set, pinned)
		if errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("cannot pin the load generator to CPUs %v: there are none of these, or not for this process", cpus)
		}
		if err != nil {
			return fmt.Errorf("cannot pin the load generator to CPUs %v: %w", cpus, err)
		}
		if fresh == 0 {
			break
		}
	}
	var granted unix.CPUSet
	if err := unix.SchedGetaffinity(0, &granted); err != nil {
		return fmt.Errorf("cannot read the CPUs of the load generator: %w", err)
	}
	if granted != set {
		return fmt.Errorf("cannot pin the load generator to CPUs %v: the system grants %d of them", cpus, granted.Count())
	}
	runtime.GOMAXPROCS(len(cpus))
	return nil
}

// pinThreads pins the threads that are not in pinned yet, adds them, and returns their number. A
// thread inherits its CPUs from the thread that started it. So a pass that finds no thread is the
// last.
func pinThreads(set *unix.CPUSet, pinned map[int]bool) (int, error) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0, err
	}
	fresh := 0
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		if err != nil || pinned[id] {
			continue
		}
		// the thread may have ended
		if err := unix.SchedSetaffinity(id, set); err != nil && !errors.Is(err, unix.ESRCH) {
			return 0, err
		}
		pinned[id] = true
		fresh++
	}
	return fresh, nil
}
