package hostinfo

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Frequency returns the current clock of the machine's fastest core in Hz. It returns false if the
// system does not report it. It is not the mean over the cores: idle cores clock down, so the mean
// would depend on how many are idle. Linux only. Virtual machines often report a constant.
func Frequency() (hz float64, ok bool) { return readFrequency(os.DirFS("/")) }

func readFrequency(root fs.FS) (hz float64, ok bool) {
	// fails only for an invalid pattern
	policies, _ := fs.Glob(root, "sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq")
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
		text, _ := fs.ReadFile(root, "proc/cpuinfo") // without the file nothing is known
		hz = parseFrequency(string(text))
	}
	return hz, hz > 0
}

// parseFrequency returns the highest "cpu MHz" of /proc/cpuinfo in Hz. Without any it returns 0.
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
