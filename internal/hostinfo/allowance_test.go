package hostinfo

import (
	"math"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"tuner/internal/alloctest"
)

// Four processors. This process may use the second and third. Times are in ticks of 10 ms.
const fourCPUs = "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 900 0 0 0 0 0 0 0 0 0\ncpu1 10 0 5 80 0 1 2 2 0 0\ncpu2 20 0 5 70 5 0 0 0 0 0\ncpu3 900 0 0 0 0 0 0 0 0 0\nintr 5\n"

// Only the processors that the process may use count. The quota is a share of them.
func TestAllowance(t *testing.T) {
	t.Parallel()
	const status, group, stat = "proc/self/status", "proc/self/cgroup", "proc/stat"
	zero := files(stat, "cpu  0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\ncpu2 0 0 0 5 0 0 0 0\ncpu3 0 0 0 0 0 0 0 0\n",
		"sys/fs/cgroup/a/cpu.stat", "usage_usec 0\nthrottled_usec 0\n", "sys/fs/cgroup/cpu.stat", "usage_usec 0\nthrottled_usec 0\n",
		"sys/fs/cgroup/cpu/c/cpu.stat", "nr_throttled 0\nthrottled_time 0\n", "sys/fs/cgroup/cpu/c/cpuacct.usage", "0\n")
	usage := CPUUsage{Busy: 430 * time.Millisecond, Idle: 1500 * time.Millisecond, Steal: 20 * time.Millisecond, Interrupts: 30 * time.Millisecond}
	check := func(name string, root fstest.MapFS, want AllowanceUsage, others ...int) {
		t.Helper()
		root[stat] = &fstest.MapFile{Data: []byte(fourCPUs)}
		a := readAllowance(root, others...)
		if got := a.snapshot(root).Since(a.snapshot(zero)); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	check("affinity", files(status, "Cpus_allowed_list:\t1-2\n", group, "0::/\n"), AllowanceUsage{CPUUsage: usage, Quota: 1, CPUs: 2})
	check("with the server's", files(status, "Cpus_allowed_list:\t1\n", "proc/7/status", "Cpus_allowed_list:\t1-2\n", group, "0::/\n"),
		AllowanceUsage{CPUUsage: usage, Quota: 1, CPUs: 2}, 7, 8)
	// The tighter quota, one core, is half of two processors. Both groups stop their threads.
	check("v2", files(status, "Cpus_allowed_list:\t1-2\n", group, "0::/a\n",
		"sys/fs/cgroup/a/cpu.max", "150000 100000\n", "sys/fs/cgroup/a/cpu.stat", "usage_usec 700000\nnr_throttled 3\nthrottled_usec 20000\n",
		"sys/fs/cgroup/cpu.max", "100000 100000\n", "sys/fs/cgroup/cpu.stat", "usage_usec 900000\nthrottled_usec 50000\n"),
		AllowanceUsage{CPUUsage: usage, Quota: 0.5, Group: 900 * time.Millisecond, Throttled: 70 * time.Millisecond, CPUs: 2})
	check("v1", files(status, "Cpus_allowed_list:\t1-2\n", group, "2:cpu,cpuacct:/c\n",
		"sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "300000\n", "sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n",
		"sys/fs/cgroup/cpu/c/cpu.stat", "nr_throttled 1\nthrottled_time 5000000\n", "sys/fs/cgroup/cpu/c/cpuacct.usage", "800000000\n"),
		AllowanceUsage{CPUUsage: usage, Quota: 1, Group: 800 * time.Millisecond, Throttled: 5 * time.Millisecond, CPUs: 2})
	// The container's /proc/stat lacks the allowed numbers, so all its processors count.
	if s := readAllowance(files(status, "Cpus_allowed_list:\t4-5\n")).snapshot(files(stat, fourCPUs)); s.cpus != 4 {
		t.Errorf("%d processors, want the 4 that are shown", s.cpus)
	}
	if s := (Allowance{}).snapshot(files()); s.IsKnown() || (s.Since(s) != AllowanceUsage{}) {
		t.Errorf("without /proc/stat: %+v", s)
	}
}

// On the real system, the processors' times add up to the elapsed time, within the ticks.
func TestOwnAllowance(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	a := ReadAllowance(os.Getpid())
	if len(a.CPUs) == 0 || len(a.CPUs) > runtime.NumCPU() {
		t.Errorf("%d processors of %d", len(a.CPUs), runtime.NumCPU())
	}
	before := a.Snapshot()
	for a.Snapshot().Since(before).Total() == 0 { // this takes time
	}
	if u := a.Snapshot().Since(before); !before.IsKnown() || u.CPUs != len(a.CPUs) || u.Quota <= 0 || u.Quota > 1 {
		t.Errorf("%+v of %+v", u, a)
	}
}

func TestParseCPUTimesOf(t *testing.T) {
	t.Parallel()
	if got, count, err := parseCPUTimesOf(fourCPUs, []int{2, 9}); err != nil || count != 1 || got != (CPUSnapshot{busy: 25, idle: 75}) {
		t.Errorf("%+v of %d, %v", got, count, err)
	}
	if _, _, err := parseCPUTimesOf("cpu0 1 2 x 4 5 6 7 8\n", []int{0}); err == nil {
		t.Error("damaged line: no error")
	}
}

func FuzzParseCPUTimesOf(f *testing.F) {
	f.Add(fourCPUs)
	f.Add("cpu\ncpu0\ncpux 1")
	f.Fuzz(func(t *testing.T, text string) {
		defer alloctest.Bound(t, len(text))()
		all := []int{0, 1, 2, 3}
		sum, count, err := parseCPUTimesOf(text, all)
		if err != nil {
			return
		}
		var parts CPUSnapshot
		lines := 0
		for _, cpu := range all {
			one, n, err := parseCPUTimesOf(text, []int{cpu})
			if err != nil {
				t.Fatal(err)
			}
			parts, lines = parts.plus(one), lines+n
		}
		if parts != sum || lines != count {
			t.Errorf("%+v of %d lines, one by one %+v of %d", sum, count, parts, lines)
		}
	})
}

func FuzzParseKeyed(f *testing.F) {
	f.Add("usage_usec 5\nnr_throttled x\nthrottled_usec 7\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer alloctest.Bound(t, len(text))()
		for name, value := range parseKeyed(text) {
			if value > math.MaxInt64 || nanoseconds(value, time.Microsecond) < 0 {
				t.Errorf("%q is %d", name, value)
			}
		}
	})
}

// A process counts with its children. Ended children count through the process that waited for
// them. No process counts twice.
func TestTreesCPU(t *testing.T) {
	t.Parallel()
	all := []relative{{pid: 4, parent: 3, cpu: 8}, {pid: 1, cpu: 100}, {pid: 2, parent: 1, cpu: 1}, {pid: 3, parent: 2, cpu: 2, isGone: true}, {pid: 5, parent: 1, cpu: 16}}
	for want, pids := range map[time.Duration][]int{11: {2}, 10: {3, 4}, 27: {5, 2, 3}, 127: {1}} {
		if got, found := treesCPU(all, pids); got != want || !found {
			t.Errorf("%v with what they started: %d, want %d", pids, got, want)
		}
	}
	if _, found := treesCPU(all, []int{9}); found {
		t.Error("a process that is not there was found")
	}
	if r, ok := parseRelative(stat); !ok || r.cpu != 1810*time.Millisecond { // 123 + 45 + 6 + 7 ticks
		t.Errorf("%+v", r)
	}
	if runtime.GOOS != "linux" {
		return
	}
	before, err := TreesCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for after := before; after <= before; { // with children that end within the interval
		if err := exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done").Run(); err != nil {
			t.Fatal(err)
		}
		if after, err = TreesCPU(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := TreesCPU(1 << 30); err == nil {
		t.Error("no such process: no error")
	}
}
