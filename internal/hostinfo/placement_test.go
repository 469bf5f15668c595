package hostinfo

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const (
	bootFile    = "proc/sys/kernel/random/boot_id"
	machineFile = "etc/machine-id"
)

func TestReadPlacement(t *testing.T) {
	t.Parallel()
	h := Host{CPU: CPU{Allowed: []int{0, 1, 2, 5}, Quota: 1.5}, Memory: Memory{Limit: 2e9}}
	machine := files(bootFile, "b-1\n", machineFile, "secret\n")
	check := func(name string, root fstest.MapFS, environment map[string]string, want Placement) {
		t.Helper()
		want.CPUs, want.Quota, want.Memory = "0-2,5", 1.5, 2e9
		got := readPlacement(root, func(name string) string { return environment[name] }, func() (string, error) { return "laptop", nil }, h)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	check("a machine", machine, nil, Placement{Host: "laptop", BootID: "b-1", MachineID: hashMachine("secret")})
	check("without files", files(), nil, Placement{Host: "laptop"})
	inPod := map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1", EnvNode: "n1", EnvInstanceType: "c7i.2xlarge", EnvImage: "registry.example.com/tuner:1@sha256:ab"}
	check("a pod", machine, inPod, Placement{Node: "n1", BootID: "b-1", InstanceType: "c7i.2xlarge", Image: "sha256:ab"})
	// A tag does not say which image it is.
	inPod[EnvImage] = "registry.example.com/tuner:1"
	check("an image without a digest", machine, inPod, Placement{Node: "n1", BootID: "b-1", InstanceType: "c7i.2xlarge"})
	check("a container", files(bootFile, "b-1\n", machineFile, "of the image\n", ".dockerenv", ""), nil, Placement{BootID: "b-1"})
}

// The machine's ID itself must not be told.
func TestHashMachine(t *testing.T) {
	t.Parallel()
	a, b := hashMachine("a"), hashMachine("b")
	if a == b || len(a) != 32 || a != hashMachine("a") {
		t.Errorf("%q, %q", a, b)
	}
}

func TestIsElsewhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b Placement
		want bool
	}{
		"nothing known":                     {Placement{}, Placement{Host: "b"}, false},
		"another node":                      {Placement{Node: "a", BootID: "1"}, Placement{Node: "b", BootID: "1"}, true},
		"the same node after a start":       {Placement{Node: "a", BootID: "1"}, Placement{Node: "a", BootID: "2"}, false},
		"the same start, renamed":           {Placement{Host: "a", BootID: "1"}, Placement{Host: "b", BootID: "1"}, false},
		"a pod, then a shell on its node":   {Placement{Node: "a", BootID: "1"}, Placement{Host: "a", BootID: "1"}, false},
		"another start, the same ID":        {Placement{Host: "a", BootID: "1", MachineID: "m"}, Placement{Host: "a", BootID: "2", MachineID: "m"}, false},
		"another start, another ID":         {Placement{Host: "a", BootID: "1", MachineID: "m"}, Placement{Host: "a", BootID: "2", MachineID: "n"}, true},
		"a copy of the disk":                {Placement{Host: "a", BootID: "1", MachineID: "m"}, Placement{Host: "b", BootID: "2", MachineID: "m"}, true},
		"another start, the name alone":     {Placement{Host: "a", BootID: "1"}, Placement{Host: "a", BootID: "2"}, false},
		"another start, another name":       {Placement{Host: "a", BootID: "1"}, Placement{Host: "b", BootID: "2"}, true},
		"containers without a node's name":  {Placement{BootID: "1"}, Placement{BootID: "2"}, true},
		"containers of one start":           {Placement{BootID: "1"}, Placement{BootID: "1"}, false},
		"a start that one of them lacks":    {Placement{Host: "a"}, Placement{Host: "b", BootID: "2"}, false},
		"a container, then another machine": {Placement{BootID: "1"}, Placement{Host: "b", BootID: "2"}, true},
	} {
		for _, got := range []bool{c.a.IsElsewhere(c.b), c.b.IsElsewhere(c.a)} {
			if got != c.want {
				t.Errorf("%s: %t, want %t both ways", name, got, c.want)
			}
		}
	}
}

func TestPlacementText(t *testing.T) {
	t.Parallel()
	p := Placement{Node: "n1", InstanceType: "c7i.2xlarge", CPUs: "0-3", Quota: 1.5, Memory: 2e9, Image: "sha256:ab", BootID: "0123456789"}
	want := "node n1, type c7i.2xlarge, CPUs 0-3, quota of 1.5 cores, memory limit 2.0 GB, image sha256:ab, start 0123456789"
	if p.String() != want || p.Name() != "n1 (start 01234567)" {
		t.Errorf("%s; %s", p, p.Name())
	}
	if got := (Placement{}).Name(); got != "a machine without a known name (start unknown)" {
		t.Error(got)
	}
	if got := Distinct([]Placement{p, {}, p}); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// A list that is written reads as the same numbers.
func FuzzFormatCPUList(f *testing.F) {
	f.Add("0-3,8")
	f.Add("5,1-2,2")
	f.Fuzz(func(t *testing.T, list string) {
		cpus, err := parseCPUList(list)
		if err != nil {
			return
		}
		slices.Sort(cpus)
		cpus = slices.Compact(cpus)
		again, err := parseCPUList(FormatCPUs(cpus))
		if err != nil || !slices.Equal(again, cpus) {
			t.Errorf("%v became %v (%v)", cpus, again, err)
		}
	})
}
