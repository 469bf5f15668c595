package target

import (
	"os"
	"strconv"
	"strings"
)

// memoryKills returns the number of processes that the kernel has killed since memory ran out, in a
// control group or on the whole machine. 0 if the system has no such counter.
func memoryKills() int {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	return parseMemoryKills(string(text))
}

// parseMemoryKills reads the counter oom_kill of /proc/vmstat.
func parseMemoryKills(vmstat string) int {
	for line := range strings.Lines(vmstat) {
		if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}
