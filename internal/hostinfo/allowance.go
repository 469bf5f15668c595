package hostinfo

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Allowance is the part of the machine's processors that this process, its children, and a server
// that it measures may use.
type Allowance struct {
	// hardware threads in the affinity masks, which the cpuset bounds; empty: unknown, all
	CPUs   []int
	Quota  float64 // cores' worth of time that the tightest cgroup grants; 0: unlimited
	groups []quotaGroup
}

// quotaGroup is a cgroup of this process that has a quota.
type quotaGroup struct {
	cgroup
	dir   string // path relative to the root of the file system
	cores float64
}

// ReadAllowance reads this process's affinity mask, those of other processes that count with it,
// and the quotas of the cgroups. It never fails: what it cannot read sets no bound. Linux only.
func ReadAllowance(others ...int) Allowance { return readAllowance(os.DirFS("/"), others...) }

func readAllowance(root fs.FS, others ...int) Allowance {
	var a Allowance
	a.CPUs, _ = readAffinity(root)
	for _, pid := range others {
		more, err := readAffinityOf(root, strconv.Itoa(pid))
		if err != nil || len(a.CPUs) == 0 {
			continue
		}
		a.CPUs = append(a.CPUs, more...)
	}
	slices.Sort(a.CPUs)
	a.CPUs = slices.Compact(a.CPUs)
	_ = visitCgroups(root, func(g cgroup, dir string) { // without cgroups there is no bound
		if cores := g.limitsIn(root, dir).cores; cores > 0 && !a.has(root, dir) {
			a.groups = append(a.groups, quotaGroup{g, dir, cores})
		}
	})
	slices.SortStableFunc(a.groups, func(a, b quotaGroup) int { return cmp.Compare(a.cores, b.cores) })
	if len(a.groups) > 0 {
		a.Quota = a.groups[0].cores
	}
	return a
}

// has reports whether a folder belongs to one of the groups under another name. In version 1, cpu
// is often a link to cpu,cpuacct.
func (a Allowance) has(root fs.FS, dir string) bool {
	info, err := fs.Stat(root, dir)
	return err == nil && slices.ContainsFunc(a.groups, func(g quotaGroup) bool {
		known, err := fs.Stat(root, g.dir)
		return err == nil && os.SameFile(info, known)
	})
}

// AllowanceSnapshot holds the times of an allowance's processors and cgroups at an instant. Two of
// them make an AllowanceUsage.
type AllowanceSnapshot struct {
	machine CPUSnapshot
	cpus    int     // number of hardware threads in the sum machine
	quota   float64 // cores; 0: unlimited
	group   time.Duration
	counts  bool // group is known
	stopped time.Duration
}

// IsKnown reports whether the system has the processors' times.
func (s AllowanceSnapshot) IsKnown() bool { return s.machine != CPUSnapshot{} }

// AllowanceUsage is the use of an allowance's processors in an interval.
type AllowanceUsage struct {
	CPUUsage // of the allowed processors
	// share of these processors' time that the quota of the cgroup grants, 0..1; 1 without a quota
	Quota     float64
	Group     time.Duration // CPU time of the cgroup with the quota; 0 without one
	Throttled time.Duration // time for which a quota stopped threads, summed over the processors
	CPUs      int           // number of allowed processors
}

// Snapshot reads the times. Times that the system does not have are zero.
func (a Allowance) Snapshot() AllowanceSnapshot { return a.snapshot(os.DirFS("/")) }

func (a Allowance) snapshot(root fs.FS) AllowanceSnapshot {
	text, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return AllowanceSnapshot{}
	}
	s := AllowanceSnapshot{quota: a.Quota}
	if s.machine, s.cpus, err = parseCPUTimesOf(string(text), a.CPUs); err != nil || s.cpus != len(a.CPUs) || s.cpus == 0 {
		if s.machine, err = parseCPUTimes(string(text)); err != nil {
			return AllowanceSnapshot{}
		}
		s.cpus = countCPUs(string(text))
	}
	for i, g := range a.groups {
		spent := g.spent(root)
		s.stopped += spent.throttled
		if i == 0 {
			s.group, s.counts = spent.usage, spent.isKnown
		}
	}
	return s
}

// countCPUs counts the processors of /proc/stat.
func countCPUs(stat string) int {
	count := 0
	for line := range strings.Lines(stat) {
		if strings.HasPrefix(line, "cpu") && !strings.HasPrefix(line, "cpu ") {
			count++
		}
	}
	return count
}

// Since returns the usage from an earlier snapshot of the same allowance to this one. It is zero if
// one of them is unknown.
func (s AllowanceSnapshot) Since(earlier AllowanceSnapshot) AllowanceUsage {
	if !s.IsKnown() || !earlier.IsKnown() || s.cpus != earlier.cpus {
		return AllowanceUsage{}
	}
	u := AllowanceUsage{CPUUsage: s.machine.Since(earlier.machine), Quota: 1, CPUs: s.cpus, Throttled: max(0, s.stopped-earlier.stopped)}
	if s.quota > 0 && s.cpus > 0 {
		u.Quota = min(1, s.quota/float64(s.cpus))
	}
	if s.counts && earlier.counts {
		u.Group = max(0, s.group-earlier.group)
	}
	return u
}

// groupTimes holds the CPU time of a cgroup, and the time for which its quota stopped threads.
type groupTimes struct {
	usage, throttled time.Duration
	isKnown          bool // the usage is known
}

// spent reads a cgroup's times. Version 2 has both in cpu.stat, in µs. Version 1 has both in ns,
// and the usage in a separate file. That file is in the same folder where cpu and cpuacct are
// mounted together, as on all current systems.
func (g quotaGroup) spent(root fs.FS) groupTimes {
	text, err := fs.ReadFile(root, path.Join(g.dir, "cpu.stat"))
	if err != nil {
		return groupTimes{}
	}
	stat := parseKeyed(string(text))
	if len(g.controllers) == 0 {
		usage, isKnown := stat["usage_usec"]
		return groupTimes{nanoseconds(usage, time.Microsecond), nanoseconds(stat["throttled_usec"], time.Microsecond), isKnown}
	}
	t := groupTimes{throttled: nanoseconds(stat["throttled_time"], time.Nanosecond)}
	if text, err := fs.ReadFile(root, path.Join(g.dir, "cpuacct.usage")); err == nil {
		usage, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 63)
		t.usage, t.isKnown = nanoseconds(usage, time.Nanosecond), err == nil
	}
	return t
}

// nanoseconds converts a count of units to a duration. It returns 0 for counts beyond the 292 years
// of a duration.
func nanoseconds(count uint64, unit time.Duration) time.Duration {
	if count > uint64(1<<63-1)/uint64(unit) {
		return 0
	}
	return time.Duration(count) * unit
}

// parseKeyed reads lines of a name and a number, as in cpu.stat. It skips lines of another form.
func parseKeyed(text string) map[string]uint64 {
	values := map[string]uint64{}
	for line := range strings.Lines(text) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		if value, err := strconv.ParseUint(digits, 10, 63); err == nil {
			values[name] = value
		}
	}
	return values
}
