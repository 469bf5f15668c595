package hostinfo

import (
	"math"
	"testing"
	"testing/fstest"

	"tuner/internal/alloctest"
)

func TestReadFrequency(t *testing.T) {
	t.Parallel()
	const policy = "sys/devices/system/cpu/cpufreq/"
	const cpuinfo = "processor\t: 0\ncpu MHz\t\t: 800.000\n\nprocessor\t: 1\ncpu MHz\t\t: 2593.906\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"the fastest policy": {map[string]string{policy + "policy0/scaling_cur_freq": "800000\n", policy + "policy4/scaling_cur_freq": "3400000\n", "proc/cpuinfo": cpuinfo}, 3.4e9},
		"one unreadable":     {map[string]string{policy + "policy0/scaling_cur_freq": "<unknown>\n", policy + "policy1/scaling_cur_freq": "1500000\n"}, 1.5e9},
		"no policies":        {map[string]string{"proc/cpuinfo": cpuinfo}, 2593.906e6},
		"Arm tells nothing":  {map[string]string{"proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 50.00\n"}, 0},
		"nothing":            {nil, 0},
	} {
		root := fstest.MapFS{}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if hz, ok := readFrequency(root); math.Abs(hz-c.want) > 1 || ok != (c.want > 0) {
			t.Errorf("%s: %g Hz, %t, want %g", name, hz, ok, c.want)
		}
	}
}

func FuzzParseFrequency(f *testing.F) {
	f.Add("processor\t: 0\ncpu MHz\t\t: 2000.000\n")
	f.Add("cpu MHz : NaN\ncpu MHz : -1\ncpu MHz : +Inf")
	f.Fuzz(func(t *testing.T, text string) {
		defer alloctest.Bound(t, len(text))()
		if hz := parseFrequency(text); !(hz >= 0) {
			t.Errorf("%g Hz", hz)
		}
	})
}
