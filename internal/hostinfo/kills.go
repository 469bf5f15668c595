package hostinfo

import (
	"io/fs"
	"os"
	"path"
	"slices"
)

// MemoryLimit returns the bytes that the cgroups of this process allow. 0: no less than the machine
// has, or unknown.
func MemoryLimit() int64 {
	m, err := readLimitedMemory()
	if err != nil || m.Limit >= m.Total {
		return 0
	}
	return m.Limit
}

// Kills counts the processes that the kernel has killed since memory ran out.
type Kills struct {
	Count   int
	InGroup bool // only those of this process's own cgroup, for whatever limit; else of the whole machine
}

// MemoryKills returns the kills so far. They are zero if the system does not count them.
func MemoryKills() Kills { return memoryKills(os.DirFS("/")) }

// memoryKills prefers the counter of the own cgroup, since other containers of the machine have no
// part in it. Version 2 counts in memory.events, version 1 in memory.oom_control. The cgroup at the
// root of the machine has no memory.events.
func memoryKills(root fs.FS) Kills {
	kills := Kills{}
	_ = visitCgroups(root, func(g cgroup, dir string) { // without cgroups the machine counts
		name := "memory.events"
		if len(g.controllers) > 0 {
			name = "memory.oom_control"
			if !slices.Contains(g.controllers, "memory") {
				return
			}
		}
		if n, ok := readKills(root, path.Join(dir, name)); ok && !kills.InGroup { // the first is the innermost
			kills = Kills{n, true}
		}
	})
	if !kills.InGroup {
		kills.Count, _ = readKills(root, "proc/vmstat")
	}
	return kills
}

// readKills reads the counter oom_kill of a file with lines of a name and a number.
func readKills(root fs.FS, name string) (int, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, ok := parseKeyed(string(text))["oom_kill"]
	return int(n), ok
}
