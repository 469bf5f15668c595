package hostinfo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
)

// files makes a file system from path, content, path, content …
func files(pairs ...string) fstest.MapFS {
	root := fstest.MapFS{}
	for pair := range slices.Chunk(pairs, 2) {
		root[pair[0]] = &fstest.MapFile{Data: []byte(pair[1])}
	}
	return root
}

func TestReadLimits(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	tests := []struct {
		name string
		root fstest.MapFS
		want limits
	}{
		{"none", files("proc/self/cgroup", "0::/\n"), limits{}},
		{"v2", files("proc/self/cgroup", "0::/a/b\n",
			"sys/fs/cgroup/a/b/cpu.max", "150000 100000\n", "sys/fs/cgroup/a/b/memory.max", "2147483648\n"), limits{1.5, 2 * gib}},
		{"v2, a parent is tighter", files("proc/self/cgroup", "0::/a/b\n",
			"sys/fs/cgroup/a/b/cpu.max", "400000 100000\n", "sys/fs/cgroup/a/cpu.max", "50000 100000\n",
			"sys/fs/cgroup/a/b/memory.max", "max\n", "sys/fs/cgroup/a/memory.max", "1073741824\n"), limits{0.5, gib}},
		{"v2, own root in a container", files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "200000 100000\n"), limits{2, 0}},
		{"v2 unlimited", files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "max 100000\n"), limits{}},
		{"v1", files("proc/self/cgroup", "4:memory:/m\n2:cpu,cpuacct:/c\n",
			"sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "300000\n", "sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n",
			"sys/fs/cgroup/memory/m/memory.limit_in_bytes", "1073741824\n"), limits{3, gib}},
		{"v1, the path is the host's", files("proc/self/cgroup", "2:cpu:/docker/123\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"), limits{0.5, 0}},
		{"v1 unlimited", files("proc/self/cgroup", "2:cpu:/\n4:memory:/\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"), limits{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := readLimits(tt.root)
			if err != nil || got != tt.want {
				t.Errorf("limits %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestReadNUMA(t *testing.T) {
	t.Parallel()
	root := files(
		"sys/devices/system/node/node1/cpulist", "2-3\n", "sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:  1024 kB\n",
		"sys/devices/system/node/node0/cpulist", "0-1\n", "sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  2048 kB\nNode 0 MemFree: 1 kB\n",
		"sys/devices/system/node/possible", "0-1\n")
	want := []NUMANode{{0, []int{0, 1}, 2048 << 10}, {1, []int{2, 3}, 1024 << 10}}
	got, err := readNUMA(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if nodes, err := readNUMA(files()); err != nil || nodes != nil {
		t.Errorf("kernel without NUMA: %v, %v", nodes, err)
	}
	if _, err := readNUMA(files("sys/devices/system/node/node0/cpulist", "0-x\n")); err == nil {
		t.Error("damaged list: no error")
	}
}

func TestReadAffinity(t *testing.T) {
	t.Parallel()
	const status, online = "proc/self/status", "sys/devices/system/cpu/online"
	check := func(root fstest.MapFS, want ...int) {
		t.Helper()
		got, err := readAffinity(root)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	check(files(status, "Name:\tx\nCpus_allowed:\t15\nCpus_allowed_list:\t0-1,4\n"), 0, 1, 4)
	check(files(status, "Cpus_allowed_list:\t0-1,4\n", online, "0-7\n"), 0, 1, 4)
	// a virtual machine with room for 128
	check(files(status, "Cpus_allowed_list:\t0-127\n", online, "0-1,3\n"), 0, 1, 3)
	// a container that renumbers them
	check(files(status, "Cpus_allowed_list:\t4-5\n", online, "0-1\n"), 4, 5)
	if got, err := readAffinity(files(status, "Cpus_allowed_list:\t0\n", online, "x\n")); err == nil {
		t.Errorf("damaged list: %v, no error", got)
	}
}

func TestParseCPUList(t *testing.T) {
	t.Parallel()
	tests := []struct {
		list string
		want []int // nil: an error is expected
	}{
		{"", []int{}},
		{"0", []int{0}},
		{"0-2,5,7-8\n", []int{0, 1, 2, 5, 7, 8}},
		{"3-1", nil},
		{"-1", nil},
		{"a", nil},
		{"0-999999999", nil},
	}
	for _, tt := range tests {
		got, err := parseCPUList(tt.list)
		if (err != nil) != (tt.want == nil) {
			t.Errorf("%q: error %v", tt.list, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.list, diff)
		}
	}
}

// A parsed list that is printed and parsed again gives the same processors.
func FuzzParseCPUList(f *testing.F) {
	for _, seed := range []string{"", "0", "0-3,8", "1-", "-", ",,", "0-65535", "5-4", "0x1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		defer alloctest.Bound(t, len(list))()
		cpus, err := parseCPUList(list)
		if err != nil {
			return
		}
		var printed []string
		for _, cpu := range cpus {
			printed = append(printed, strconv.Itoa(cpu))
		}
		again, err := parseCPUList(strings.Join(printed, ","))
		if err != nil && len(cpus) <= maxCPU {
			t.Fatalf("%q: cannot read back %q: %v", list, printed, err)
		}
		if err == nil && !slices.Equal(cpus, again) {
			t.Errorf("%q: %v reads back as %v", list, cpus, again)
		}
	})
}

// Limits are positive or absent for any content of the cgroup files.
func FuzzReadLimits(f *testing.F) {
	f.Add("0::/a\n", "150000 100000\n", "max")
	f.Add("2:cpu:/../..\n", "-1", "9223372036854771712")
	f.Add("0::/a/../../b\n4:memory:x\n:::\n", "1 0", "-5")
	f.Fuzz(func(t *testing.T, groups, cpu, memory string) {
		root := files("proc/self/cgroup", groups, "sys/fs/cgroup/cpu.max", cpu, "sys/fs/cgroup/memory.max", memory)
		got, err := readLimits(root)
		if err != nil || got.cores < 0 || got.memory < 0 {
			t.Errorf("limits %+v, %v", got, err)
		}
	})
}

func FuzzParseNodeMemory(f *testing.F) {
	f.Add("Node 0 MemTotal:       10184908 kB\nNode 0 MemFree: 5 kB\n")
	f.Add("MemTotal: -5 kB")
	f.Add("MemTotal:")
	f.Fuzz(func(t *testing.T, meminfo string) {
		defer alloctest.Bound(t, len(meminfo))()
		size, err := parseNodeMemory(meminfo)
		if err != nil {
			return
		}
		again, err := parseNodeMemory(fmt.Sprintf("Node 7 MemTotal: %d kB\n", size>>10))
		if err != nil || again != size || size < 0 {
			t.Errorf("%q: %d reads back as %d, %v", meminfo, size, again, err)
		}
	})
}
