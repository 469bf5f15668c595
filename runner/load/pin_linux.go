package load

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pin keeps all threads of this process, and those to come, on the listed CPUs, and has Go run on as many at once. It is to be called
// before there is a load. The error says which CPUs the system did not grant.
func Pin(cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu) // one beyond the set is ignored, and missed below
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

// pinThreads pins the threads that are not in pinned yet, adds them, and returns their number. A thread inherits the CPUs of the one
// that started it, so that a pass that finds none was the last.
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
		if err := unix.SchedSetaffinity(id, set); err != nil && !errors.Is(err, unix.ESRCH) { // it may have ended
			return 0, err
		}
		pinned[id] = true
		fresh++
	}
	return fresh, nil
}
