package main

import (
	"encoding/binary"
	"math"
	"os"
	"regexp"
	"strconv"

	"tuner/model/modelconfig/configpb"
)

// resetPeak resets peak.
func resetPeak() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // if it fails, the peak is that of the whole process
}

var peakLine = regexp.MustCompile(`VmHWM:\s*(\d+) kB`)

// peak returns the largest resident memory of this process since resetPeak, in bytes; 0 if the
// system does not report it.
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

// near reports whether two outputs are equal. Numbers in 32 bits may differ by the effect of
// another order of additions.
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
