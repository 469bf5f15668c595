package main

import (
	"encoding/binary"
	"math"
	"os"
	"regexp"
	"strconv"

	"tuner/model/modelconfig/configpb"
)

// resetPeak makes peak begin anew.
func resetPeak() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // where it fails, the peak is that of the whole process
}

var peakLine = regexp.MustCompile(`VmHWM:\s*(\d+) kB`)

// peak is the most memory that this process had resident since resetPeak, in bytes; 0 where the system does not say.
func peak() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	m := peakLine.FindSubmatch(status)
	if m == nil {
		return 0
	}
	kilobytes, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}

// near reports whether two outputs are the same. Numbers in 32 bits may differ by what another order of additions makes.
func near(t configpb.DataType, a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	if t != configpb.DataType_TYPE_FP32 {
		return string(a) == string(b)
	}
	for ; len(a) >= 4; a, b = a[4:], b[4:] {
		x, y := float64(math.Float32frombits(binary.LittleEndian.Uint32(a))), float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		same := x == y || math.IsNaN(x) && math.IsNaN(y)
		if !same && !(math.Abs(x-y) <= 1e-4*math.Max(1, math.Max(math.Abs(x), math.Abs(y)))) {
			return false
		}
	}
	return true
}
