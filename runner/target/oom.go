package target

import (
	"os"
	"strconv"
	"strings"
)

// memoryKills is how many processes the kernel has killed for want of memory, in a control group or
// at large; 0 when the system does not tell.
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
