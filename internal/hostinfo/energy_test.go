package hostinfo

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// rapl makes the files of energy counters: name of a zone, microjoules, and highest value of the
// counter.
func rapl(zones map[string][3]string) fstest.MapFS {
	root := fstest.MapFS{}
	for zone, text := range zones {
		for i, file := range []string{"name", "energy_uj", "max_energy_range_uj"} {
			root["sys/class/powercap/"+zone+"/"+file] = &fstest.MapFile{Data: []byte(text[i] + "\n")}
		}
	}
	return root
}

func TestCPUEnergy(t *testing.T) {
	t.Parallel()
	read := func(first, second string) EnergySnapshot {
		t.Helper()
		s, err := readEnergy(rapl(map[string][3]string{
			"intel-rapl:0": {"package-0", first, "262143328850"}, "intel-rapl:0:0": {"core", "7", "262143328850"}, "intel-rapl:0:1": {"dram", "7", "65712999613"},
			"intel-rapl:1": {"package-1", second, "262143328850"}, "intel-rapl:2": {"psys", "7", "262143328850"},
		}))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	begin := read("1000000", "262143000000")
	// The first package used 2.5 J. The second used the last 0.32885 J of its counter, and 1 J
	// after the restart.
	if joules, ok := read("3500000", "1000000").Since(begin); !ok || joules != 3.82885 {
		t.Errorf("%v J, %t, want 3.82885", joules, ok)
	}
	if joules, ok := begin.Since(begin); !ok || joules != 0 {
		t.Errorf("in no time %v J, %t", joules, ok)
	}
	one, err := readEnergy(rapl(map[string][3]string{"intel-rapl:0": {"package-0", "1", "10"}}))
	if err != nil {
		t.Fatal(err)
	}
	other, err := readEnergy(rapl(map[string][3]string{"intel-rapl:1": {"package-1", "1", "10"}}))
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]EnergySnapshot{"a package is gone": {one, begin}, "another package": {other, one}, "nothing": {{}, {}}} {
		if joules, ok := pair[0].Since(pair[1]); ok {
			t.Errorf("%s: %v J", name, joules)
		}
	}
}

// locked is a file system whose energy counters only root may read.
type locked struct{ fs.FS }

func (l locked) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "energy_uj") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return l.FS.Open(name)
}

func TestCPUEnergyThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const zone = "/sys/class/powercap/intel-rapl:0/"
	readable := rapl(map[string][3]string{"intel-rapl:0": {"package-0", "1", "10"}})
	for name, c := range map[string]struct {
		root fs.FS
		want string
	}{
		"no counters":     {fstest.MapFS{}, "the system shows no energy counters of the CPU (RAPL, /sys/class/powercap)"},
		"parts alone":     {rapl(map[string][3]string{"intel-rapl:0:0": {"core", "1", "10"}}), "the system shows no energy counters of the CPU (RAPL, /sys/class/powercap)"},
		"not allowed":     {locked{readable}, "cannot read " + zone + "energy_uj: permission denied; run as root, or let all read it: chmod a+r " + zone + "energy_uj"},
		"no number":       {rapl(map[string][3]string{"intel-rapl:0": {"package-0", "much", "10"}}), "cannot read " + zone + `energy_uj: "much\n" is not an energy in microjoules`},
		"too large a one": {rapl(map[string][3]string{"intel-rapl:0": {"package-0", "1", "18446744073709551615"}}), "cannot read " + zone + `max_energy_range_uj: "18446744073709551615\n" is not an energy in microjoules`},
	} {
		s, err := readEnergy(c.root)
		if err == nil || err.Error() != c.want || len(s.packages) != 0 {
			t.Errorf("%s: %+v, %v, want %q", name, s, err, c.want)
		}
	}
	if _, err := readEnergy(locked{readable}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v does not say that it is a matter of rights", err)
	}
}
