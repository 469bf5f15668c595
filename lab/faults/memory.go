package main

import (
	"encoding/binary"
	"math"
	"os"

	"tuner/internal/hostinfo"
	"tuner/model/modelconfig/configpb"
)

// resetPeak resets peak.
func resetPeak() {
	_ = hostinfo.ResetPeak(os.Getpid()) // if it fails, the peak is that of the whole process
}

// peak returns the largest resident memory of this process since resetPeak, in bytes; 0 if the
// system does not report it.
func peak() int64 {
	usage, _ := hostinfo.Process(os.Getpid())
	return usage.PeakRSS
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
