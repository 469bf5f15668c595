package hostinfo

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// relative is a process with its parent and its group.
type relative struct {
	pid, parent, group int
	isGone             bool // it has exited, and its parent has not waited for it
	// CPU time of it and of the children that it has waited for; 0 unknown
	cpu time.Duration
}

// Tree lists a process and its running descendants. The process comes first. If the system does not
// report them, Tree returns only the process. Linux only.
func Tree(pid int) []int {
	tree, all := []int{pid}, relatives()
	for i := 0; i < len(tree); i++ {
		for _, r := range all {
			if r.parent == tree[i] && !r.isGone && !slices.Contains(tree, r.pid) {
				tree = append(tree, r.pid)
			}
		}
	}
	return tree
}

// TreesCPU returns the CPU time of processes and all their descendants, in steps of 10 ms. An ended
// process counts while its parent, or the process that waited for it, runs. Trees may overlap: each
// process counts once. TreesCPU fails if no process can be seen. Linux only.
func TreesCPU(pids ...int) (time.Duration, error) {
	sum, found := treesCPU(relatives(), pids)
	if !found {
		return 0, fmt.Errorf("cannot read the CPU time of processes %v and what they started: none can be seen", pids)
	}
	return sum, nil
}

func treesCPU(all []relative, pids []int) (sum time.Duration, found bool) {
	counted := map[int]bool{} // for lookup only
	for _, pid := range pids {
		counted[pid] = true
	}
	for grows := true; grows; {
		grows = false
		for _, r := range all {
			if counted[r.parent] && !counted[r.pid] {
				counted[r.pid], grows = true, true
			}
		}
	}
	for _, r := range all {
		if counted[r.pid] {
			sum, found = sum+r.cpu, true
		}
	}
	return sum, found
}

// Group lists the running processes of a process group. Linux only.
func Group(id int) []int {
	var group []int
	for _, r := range relatives() {
		if r.group == id && !r.isGone {
			group = append(group, r.pid)
		}
	}
	return group
}

// Usage returns the sum over those processes that still run. Memory that they share counts for
// each. It fails if none runs.
func Usage(pids []int) (ProcessUsage, error) {
	var sum ProcessUsage
	var failed error
	read := 0
	for _, pid := range pids {
		one, err := Process(pid)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		read++
		sum.CPU, sum.RSS, sum.PeakRSS = sum.CPU+one.CPU, sum.RSS+one.RSS, sum.PeakRSS+one.PeakRSS
	}
	if read == 0 {
		return ProcessUsage{}, failed
	}
	return sum, nil
}

// relatives lists all visible processes. The list is empty if the system does not report them.
func relatives() []relative {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var list []relative
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", e.Name()))
		if err != nil {
			continue // it has just ended
		}
		if r, ok := parseRelative(string(text)); ok {
			list = append(list, r)
		}
	}
	return list
}

// parseRelative reads /proc/PID/stat: pid, command in parentheses, state, parent, process group,
// and the CPU times, which may be missing.
func parseRelative(stat string) (relative, bool) {
	begin, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if begin < 0 || end < begin {
		return relative{}, false
	}
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 3 {
		return relative{}, false
	}
	pid, err1 := strconv.Atoi(strings.TrimSpace(stat[:begin]))
	parent, err2 := strconv.Atoi(fields[1])
	group, err3 := strconv.Atoi(fields[2])
	r := relative{pid: pid, parent: parent, group: group, isGone: fields[0] == "Z" || fields[0] == "X"}
	// utime to cstime; proc(5) counts from 1, and fields begins with the third
	const first, last = 14 - 3, 17 - 3
	if len(fields) > last {
		for _, field := range fields[first : last+1] {
			ticks, err := parseTicks(field)
			if err != nil {
				return relative{}, false
			}
			r.cpu += ticks
		}
	}
	return r, errors.Join(err1, err2, err3) == nil
}
