package hostinfo

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// twoNodes is a machine with two nodes of two physical cores, with two processors each. As usual, the
// second processors of all cores follow the first ones: 0 and 4, 1 and 5, 2 and 6, 3 and 7.
func twoNodes(allowed string) fstest.MapFS {
	root := fstest.MapFS{
		"proc/self/status":                      {Data: []byte("Name:\tx\nCpus_allowed_list:\t" + allowed + "\n")},
		"sys/devices/system/cpu/online":         {Data: []byte("0-7\n")},
		"sys/devices/system/node/node0/cpulist": {Data: []byte("0-1,4-5\n")},
		"sys/devices/system/node/node1/cpulist": {Data: []byte("2-3,6-7\n")},
		"sys/devices/system/node/node0/meminfo": {Data: []byte("Node 0 MemTotal: 16384 kB\n")},
		"sys/devices/system/node/node1/meminfo": {Data: []byte("Node 1 MemTotal: 16384 kB\n")},
	}
	for id, siblings := range []string{"0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"} {
		root["sys/devices/system/cpu/cpu"+string(rune('0'+id))+"/topology/thread_siblings_list"] = &fstest.MapFile{Data: []byte(siblings + "\n")}
	}
	return root
}

func TestCores(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		root fstest.MapFS
		want []Core
	}{
		"all":        {twoNodes("0-7"), []Core{{0, 0, 0}, {4, 0, 0}, {1, 1, 0}, {5, 1, 0}, {2, 2, 1}, {6, 2, 1}, {3, 3, 1}, {7, 3, 1}}},
		"some":       {twoNodes("3-6"), []Core{{4, 0, 0}, {5, 1, 0}, {6, 2, 1}, {3, 3, 1}}},
		"no details": {fstest.MapFS{"proc/self/status": {Data: []byte("Cpus_allowed_list:\t1,0\n")}}, []Core{{0, 0, 0}, {1, 1, 0}}},
	} {
		got, err := readCores(c.root)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestCoresThatCannotBeRead(t *testing.T) {
	t.Parallel()
	damaged := twoNodes("0-7")
	damaged["sys/devices/system/cpu/cpu2/topology/thread_siblings_list"].Data = []byte("2-x")
	for want, root := range map[string]fstest.MapFS{
		"cannot read the processors of this process": {},
		"physical core of processor 2":               damaged,
	} {
		if _, err := readCores(root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
