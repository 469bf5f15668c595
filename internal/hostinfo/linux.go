package hostinfo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Paths are relative to the root of the file system, as in package fs.
const (
	cgroupRoot = "sys/fs/cgroup"
	nodeRoot   = "sys/devices/system/node"
)

// readAffinity returns the processors on which this process may run. It leaves out processors of
// the kernel's mask that cannot run. These are switched off, or the machine could have them but
// lacks them, as on many virtual machines.
func readAffinity(root fs.FS) ([]int, error) { return readAffinityOf(root, "self") }

// readAffinityOf is readAffinity for a process, by its name in /proc.
func readAffinityOf(root fs.FS, process string) ([]int, error) {
	status, err := fs.ReadFile(root, path.Join("proc", process, "status"))
	if err != nil {
		return nil, err
	}
	allowed, err := parseCPUList(statusField(string(status), "Cpus_allowed_list"))
	if err != nil {
		return nil, err
	}
	online, err := readOnline(root)
	if errors.Is(err, fs.ErrNotExist) {
		return allowed, nil
	}
	if err != nil || len(allowed) <= len(online) { // containers may renumber online processors (lxcfs)
		return allowed, err
	}
	return slices.DeleteFunc(allowed, func(cpu int) bool { return !slices.Contains(online, cpu) }), nil
}

// readOnline returns the processors of the machine that are switched on.
func readOnline(root fs.FS) ([]int, error) {
	text, err := fs.ReadFile(root, "sys/devices/system/cpu/online")
	if err != nil {
		return nil, err
	}
	return parseCPUList(string(text))
}

// Online returns the number of processors of the machine that are switched on; 0: unknown. The process may be
// kept to fewer.
func Online() int {
	list, err := readOnline(os.DirFS("/"))
	if err != nil {
		return 0 // no Linux, or a container hides it
	}
	return len(list)
}

// IsWhole reports whether so many cores are the whole machine, or the machine's are unknown. A process may be kept to
// fewer, such as by taskset.
func IsWhole(cores int) bool { return cores >= Online() }

// statusField returns the text after "name:" in /proc/PID/status, "" if it is missing.
func statusField(status, name string) string {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// maxCPU bounds processor numbers, so that a damaged list cannot make us allocate much memory.
// Linux itself allows 8192.
const maxCPU = 1 << 16

// parseCPUList reads the kernel's lists: "0-3,8" is 0, 1, 2, 3, 8.
func parseCPUList(list string) ([]int, error) {
	cpus := []int{}
	for field := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		if field == "" {
			continue
		}
		first, last, isRange := strings.Cut(field, "-")
		if !isRange {
			last = first
		}
		low, err := strconv.Atoi(first)
		if err != nil {
			return nil, fmt.Errorf("CPU list %q: %w", list, err)
		}
		high, err := strconv.Atoi(last)
		if err != nil {
			return nil, fmt.Errorf("CPU list %q: %w", list, err)
		}
		if low < 0 || high < low || high >= maxCPU || len(cpus) > maxCPU {
			return nil, fmt.Errorf("CPU list %q: %q is not a range of processors", list, field)
		}
		for cpu := low; cpu <= high; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// limits are the limits of the cgroups. 0: unlimited.
type limits struct {
	cores  float64
	memory int64 // bytes
}

// readLimits returns the tightest limit on the path from this process's cgroup to the root, of
// version 2 and of version 1.
func readLimits(root fs.FS) (limits, error) {
	var tightest limits
	err := visitCgroups(root, func(g cgroup, dir string) { tightest = tightest.and(g.limitsIn(root, dir)) })
	return tightest, err
}

// visitCgroups calls visit for each folder on the paths from this process's cgroups to their roots,
// at all usual mount points.
func visitCgroups(root fs.FS, visit func(g cgroup, dir string)) error {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return err
	}
	for _, group := range parseCgroups(string(text)) {
		for _, mount := range group.mounts() {
			for dir := group.path; ; dir = path.Dir(dir) {
				visit(group, path.Join(mount, dir))
				if dir == "/" {
					break
				}
			}
		}
	}
	return nil
}

func (l limits) and(other limits) limits {
	if other.cores > 0 && (l.cores == 0 || other.cores < l.cores) {
		l.cores = other.cores
	}
	if other.memory > 0 && (l.memory == 0 || other.memory < l.memory) {
		l.memory = other.memory
	}
	return l
}

// cgroup is a line of /proc/self/cgroup.
type cgroup struct {
	controllers []string // empty: version 2
	path        string   // absolute and clean
}

// parseCgroups reads /proc/self/cgroup: lines of hierarchy:controllers:path. It skips lines of
// another form.
func parseCgroups(text string) []cgroup {
	var groups []cgroup
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 || !strings.HasPrefix(fields[2], "/") {
			continue
		}
		group := cgroup{path: path.Clean(fields[2])}
		if fields[1] != "" {
			group.controllers = strings.Split(fields[1], ",")
		}
		groups = append(groups, group)
	}
	return groups
}

// mounts returns the usual mount points of the group's hierarchy.
func (g cgroup) mounts() []string {
	switch {
	case len(g.controllers) == 0:
		return []string{cgroupRoot, cgroupRoot + "/unified"} // the second is used beside version 1
	case slices.Contains(g.controllers, "cpu"):
		return []string{cgroupRoot + "/cpu", cgroupRoot + "/cpu,cpuacct"}
	case slices.Contains(g.controllers, "memory"):
		return []string{cgroupRoot + "/memory"}
	}
	return nil
}

// limitsIn reads the limits in one folder. Missing files set no limit.
func (g cgroup) limitsIn(root fs.FS, dir string) limits {
	read := func(name string) string {
		text, err := fs.ReadFile(root, path.Join(dir, name))
		if err != nil {
			return ""
		}
		return string(text)
	}
	if len(g.controllers) == 0 {
		return limits{parseCPUMax(read("cpu.max")), parseMemoryLimit(read("memory.max"))}
	}
	return limits{
		parseCPUMax(read("cpu.cfs_quota_us") + " " + read("cpu.cfs_period_us")),
		parseMemoryLimit(read("memory.limit_in_bytes")),
	}
}

// parseCPUMax reads "quota period" in µs and returns cores. "max", -1 and all other texts are
// unlimited.
func parseCPUMax(text string) float64 {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return 0
	}
	quota, err := strconv.ParseInt(fields[0], 10, 64)
	period, periodErr := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || periodErr != nil || quota <= 0 || period <= 0 {
		return 0
	}
	return float64(quota) / float64(period)
}

// parseMemoryLimit reads bytes. "max" is unlimited. So is the largest number of whole pages, which
// version 1 writes for it.
func parseMemoryLimit(text string) int64 {
	const unlimited = 1 << 62
	limit, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || limit <= 0 || limit >= unlimited {
		return 0
	}
	return limit
}

// NUMANodes returns the machine's NUMA nodes by number. A kernel without NUMA has none.
func NUMANodes() ([]NUMANode, error) { return readNUMA(os.DirFS("/")) }

// readNUMA returns the NUMA nodes by number. A kernel without NUMA has none.
func readNUMA(root fs.FS) ([]NUMANode, error) {
	entries, err := fs.ReadDir(root, nodeRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var nodes []NUMANode
	for _, entry := range entries {
		digits, ok := strings.CutPrefix(entry.Name(), "node")
		id, err := strconv.Atoi(digits)
		if !ok || err != nil {
			continue
		}
		node, err := readNode(root, id)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	slices.SortFunc(nodes, func(a, b NUMANode) int { return a.ID - b.ID })
	return nodes, nil
}

func readNode(root fs.FS, id int) (NUMANode, error) {
	dir := fmt.Sprintf("%s/node%d", nodeRoot, id)
	list, err := fs.ReadFile(root, dir+"/cpulist")
	if err != nil {
		return NUMANode{}, err
	}
	cpus, err := parseCPUList(string(list))
	if err != nil {
		return NUMANode{}, err
	}
	text, err := fs.ReadFile(root, dir+"/meminfo")
	if err != nil {
		return NUMANode{}, err
	}
	memory, err := parseNodeMemory(string(text))
	return NUMANode{id, cpus, memory}, err
}

// parseNodeMemory finds a line such as "Node 0 MemTotal: 16384 kB" and returns bytes.
func parseNodeMemory(meminfo string) (int64, error) {
	for line := range strings.Lines(meminfo) {
		if _, value, ok := strings.Cut(line, "MemTotal:"); ok {
			return parseKibibytes(value)
		}
	}
	return 0, errors.New("no MemTotal in the node's meminfo")
}

// parseKibibytes reads a text such as "16384 kB", where the kernel means KiB, and returns bytes.
func parseKibibytes(text string) (int64, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), " kB")
	if !ok {
		return 0, fmt.Errorf("%q is not a size in kB", text)
	}
	size, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || size < 0 || size > 1<<50 {
		return 0, fmt.Errorf("%q is not a size in kB", text)
	}
	return size << 10, nil
}
