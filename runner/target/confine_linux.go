package target

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"tuner/runner"
)

// untouched is the private writable memory in bytes that an engine maps and does not touch: stacks of
// threads of 8 MiB each, and reserves of allocators. It counts for the kernel's bound on such memory
// (RLIMIT_DATA), and takes none of the control group's. An idle engine with MiniLM on two cores has
// 151 MB of it.
const untouched = 256 << 20

// firstVictim is the oom_score_adj of a process that the kernel kills before all others.
const firstVictim = "1000"

// confine bounds the memory of a process and of what it starts from now on, in a control group that
// allows group bytes: to runner.EngineShare of it and what is never touched. The guard looks ten times
// a second; this bound holds between two looks, and an allocation then fails instead of ending the
// container. If memory runs out all the same, the kernel chooses the engine before this program.
// Where refuses is false, and if the system takes no bound, the guard is left.
func confine(pid int, group int64) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(firstVictim), 0)
	if !refuses() {
		return
	}
	most := uint64(runner.EngineShare*float64(group)) + untouched
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil)
}

// refuses reports whether confine lets allocations fail. With GPUs there is no bound, since their drivers map far more
// address space than they use.
func refuses() bool { return !hasGPU() }

// hasGPU reports whether the system has the device of NVIDIA's driver, of AMD's, or of WSL's.
func hasGPU() bool {
	for _, device := range []string{"/dev/nvidiactl", "/dev/kfd", "/dev/dxg"} {
		if _, err := os.Stat(device); err == nil {
			return true
		}
	}
	return false
}
