package hostinfo

import (
	"testing"
	"testing/fstest"
)

// The own cgroup counts in both versions. Without its counter, the machine's is left.
func TestMemoryKills(t *testing.T) {
	t.Parallel()
	const group, vmstat = "proc/self/cgroup", "nr_free_pages 12\noom_kill 7\nswpin_zero 0\n"
	for name, c := range map[string]struct {
		root fstest.MapFS
		want Kills
	}{
		"v2": {files(group, "0::/a\n", "proc/vmstat", vmstat, "sys/fs/cgroup/a/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 1\n",
			"sys/fs/cgroup/memory.events", "oom_kill 5\n"), Kills{2, true}},
		"v2, own root in a container": {files(group, "0::/\n", "sys/fs/cgroup/memory.events", "oom_kill 4\n"), Kills{4, true}},
		"v2, the root of the machine": {files(group, "0::/\n", "proc/vmstat", vmstat), Kills{7, false}},
		"v1": {files(group, "4:memory:/b\n3:cpu:/b\n", "proc/vmstat", vmstat, "sys/fs/cgroup/memory/b/memory.oom_control",
			"oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), Kills{1, true}},
		"v1, mounted in a container": {files(group, "4:memory:/docker/b\n", "sys/fs/cgroup/memory/memory.oom_control", "oom_kill 3\n"), Kills{3, true}},
		"an old kernel":              {files(group, "4:memory:/\n", "sys/fs/cgroup/memory/memory.oom_control", "under_oom 0\n"), Kills{}},
		"damaged":                    {files(group, "0::/\n", "proc/vmstat", "oom_kill x\n"), Kills{}},
		"nothing":                    {files(), Kills{}},
	} {
		if got := memoryKills(c.root); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
