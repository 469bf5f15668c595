package hostinfo

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Frequency is the clock of the machine's fastest core now, in Hz; false where the system does not tell. It is not the
// mean of the cores: those that have nothing to do clock down, so that a mean would tell how many these are. Linux only;
// virtual machines often tell a constant.
func Frequency() (hz float64, ok bool) { return readFrequency(os.DirFS("/")) }

func readFrequency(root fs.FS) (hz float64, ok bool) {
	policies, _ := fs.Glob(root, "sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq") // only a bad pattern is an error
	for _, policy := range policies {
		text, err := fs.ReadFile(root, policy)
		if err != nil {
			continue // its cores are switched off
		}
		if kHz, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			hz = max(hz, float64(kHz)*1e3)
		}
	}
	if hz == 0 {
		text, _ := fs.ReadFile(root, "proc/cpuinfo") // without it nothing is known
		hz = parseFrequency(string(text))
	}
	return hz, hz > 0
}

// parseFrequency returns the highest "cpu MHz" of /proc/cpuinfo in Hz; 0 without any.
func parseFrequency(cpuinfo string) float64 {
	var hz float64
	for line := range strings.Lines(cpuinfo) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) != "cpu MHz" {
			continue
		}
		if mhz, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && mhz*1e6 > hz { // false for NaN
			hz = mhz * 1e6
		}
	}
	return hz
}
