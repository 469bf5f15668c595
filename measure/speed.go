package measure

import (
	"math"
	"slices"
	"time"

	"tuner/measure/stats"
)

// Speed describes how the speed of a machine varies within seconds: its logarithm is an
// Ornstein-Uhlenbeck process. The zero value is a constant speed, or one that is unknown.
type Speed struct {
	Deviation float64 `json:"deviation" jsonschema:"minimum=0"` // standard deviation of the speed's logarithm
	// time constant in seconds: a difference from the mean falls to 1/e within it
	Time float64 `json:"time" jsonschema:"exclusiveMinimum=0"`
}

// SpeedOf learns the speed of the machine from closed loops, each a list of windows that ascend in time. In
// a closed loop the mean latency goes with the time of a batch. What sub-windows share that are near
// in time is the machine's speed, and what else they differ in is noise. Windows in which other
// programs computed are left out, since the machine is not theirs later. It returns the zero value if near
// sub-windows share nothing.
func SpeedOf(loops [][]Window) Speed {
	var v stats.Variogram
	for _, windows := range loops {
		moments := momentsOf(windows)
		for i, b := range moments {
			for _, a := range moments[:i] {
				v.Add(b.at-a.at, a.log, b.log)
			}
		}
	}
	_, sill, scale, ok := v.Exponential()
	if !ok {
		return Speed{}
	}
	return Speed{math.Sqrt(sill), scale}
}

// moment has the logarithm of the mean latency at an instant in s.
type moment struct{ at, log float64 }

// momentsOf lists the sub-windows of a closed loop in which requests ended.
func momentsOf(windows []Window) (list []moment) {
	for _, w := range windows {
		if slices.Contains(w.Flags, FlagForeign) {
			continue
		}
		sums, counts := Measurement{Windows: []Window{w}}.latencySums()
		at := w.Start
		for i, s := range w.Sub {
			length := s.Duration
			if length == 0 {
				length = w.Duration / time.Duration(len(w.Sub))
			}
			if sums[i] > 0 {
				list = append(list, moment{(at + length/2).Seconds(), math.Log(sums[i] / counts[i])})
			}
			at += length
		}
	}
	return list
}
