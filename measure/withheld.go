package measure

import "math"

// busyShare is the share of the cores that engine, clients and others together must use before
// what others take is missing. Below it the others ran on cores that would have idled.
const busyShare = 0.8

// Withheld says how much CPU time others had that engine and clients could have used: other
// processes of the machine, and the hypervisor. It is −ln(1 − share of the cores' CPU time), so
// that throughput is expected to fall by the factor exp(−Withheld). It is 0 where the window
// left cores idle, and where the number of cores is unknown.
func (w Window) Withheld(cores int) float64 {
	if cores <= 0 || w.Duration <= 0 {
		return 0
	}
	const most = 0.95 // a window that got nothing at all would have no logarithm
	taken := min(max(w.Steal+w.Foreign, 0), most)
	used := (w.EngineCPU + w.ClientCPU).Seconds() / (w.Duration.Seconds() * float64(cores))
	if used > 0 && used+taken < busyShare {
		return 0
	}
	return -math.Log1p(-taken)
}

// Withheld is the mean of the windows', by their durations.
func (m Measurement) Withheld(cores int) float64 {
	sum, seconds := 0.0, 0.0
	for _, w := range m.Windows {
		sum += w.Withheld(cores) * w.Duration.Seconds()
		seconds += w.Duration.Seconds()
	}
	if seconds == 0 {
		return 0
	}
	return sum / seconds
}
