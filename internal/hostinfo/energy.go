package hostinfo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"tuner/internal/durable"
)

// EnergySnapshot holds the energy counters of the machine's CPU packages. The counters restart
// after about an hour of full load. The difference of two snapshots is in joules.
type EnergySnapshot struct{ packages []packageEnergy }

// packageEnergy is the counter of one CPU package.
type packageEnergy struct {
	zone       string // folder of the counter
	used, last uint64 // microjoules; last: the highest value, after which it restarts
}

// Since returns the joules used since an earlier snapshot. It returns false unless both have the
// same packages.
func (s EnergySnapshot) Since(earlier EnergySnapshot) (joules float64, ok bool) {
	if len(s.packages) == 0 || len(s.packages) != len(earlier.packages) {
		return 0, false
	}
	for i, now := range s.packages {
		before := earlier.packages[i]
		if before.zone != now.zone {
			return 0, false
		}
		used := now.used - before.used
		if now.used < before.used {
			used = now.last - before.used + now.used
		}
		joules += float64(used) / 1e6
	}
	return joules, true
}

// CPUEnergy reads the energy counters of the CPU packages from Linux's powercap
// (Documentation/power/powercap/powercap.rst). They are Intel's RAPL, which AMD's processors have
// too. The error says why it cannot read them: on most systems only root may, and virtual machines
// have none.
func CPUEnergy() (EnergySnapshot, error) { return readEnergy(os.DirFS("/")) }

func readEnergy(root fs.FS) (EnergySnapshot, error) {
	// only a bad pattern is an error
	names, _ := fs.Glob(root, "sys/class/powercap/intel-rapl:*/name")
	var s EnergySnapshot
	for _, file := range names {
		name, err := fs.ReadFile(root, file)
		if err != nil || !strings.HasPrefix(string(name), "package-") {
			continue // a part of a package, or the whole platform
		}
		p := packageEnergy{zone: path.Dir(file)}
		if p.used, err = readMicrojoules(root, p.zone+"/energy_uj"); err != nil {
			return EnergySnapshot{}, err
		}
		if p.last, err = readMicrojoules(root, p.zone+"/max_energy_range_uj"); err != nil {
			return EnergySnapshot{}, err
		}
		s.packages = append(s.packages, p)
	}
	if len(s.packages) == 0 {
		return EnergySnapshot{}, errors.New("the system shows no energy counters of the CPU (RAPL, /sys/class/powercap)")
	}
	return s, nil
}

// readMicrojoules reads a file with one number.
func readMicrojoules(root fs.FS, file string) (uint64, error) {
	text, err := fs.ReadFile(root, file)
	if errors.Is(err, fs.ErrPermission) {
		return 0, fmt.Errorf("cannot read /%s: %w; run as root, or let all read it: chmod a+r /%[1]s", file, durable.Cause(err))
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read /%s: %w", file, durable.Cause(err))
	}
	// 62 bits: the sum of two cannot overflow
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 62)
	if err != nil {
		return 0, fmt.Errorf("cannot read /%s: %q is not an energy in microjoules", file, text)
	}
	return n, nil
}
