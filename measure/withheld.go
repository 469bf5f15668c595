package measure

import "math"

const (
	// busyShare is the share of the cores that engine, clients and others together must use before what other processes
	// take is missing. Below it the others ran on cores that would have idled. It is less than 1, since threads that wait
	// for each other leave some time idle also where they are short of cores.
	busyShare = 0.8
	// mostWithheld bounds the share that is taken for withheld: a window that got nothing at all has no logarithm.
	mostWithheld = 0.95
)

// Withheld says how much CPU time others had that engine and clients could have used: other processes of the machine, and
// the hypervisor. It is −ln of the share that was left, ≥ 0, so that throughput is expected to fall by the factor
// exp(−Withheld). cores is how many the process may use; a window that tells its own (Cores) goes by that.
//
// The hypervisor takes only from processors that want to run, so its share is of these. Other processes take only where the
// window leaves no cores idle, and then from what the hypervisor left. On cores that are all busy the share that is left is
// 1 − steal − foreign. Where the work of engine and clients is not known, the cores are taken for busy. It is 0 where the number of cores is unknown. A cgroup's quota withholds nothing
// (Throttled): it is the machine, and what others within it use is foreign.
func (w Window) Withheld(cores int) float64 { return w.WithheldOf(cores, 0) }

// WithheldOf is Withheld where engine and clients can use so many cores' worth of CPU time at most, as with a single thread:
// other processes take nothing from them before they use more than the rest. 0: unknown, all cores.
func (w Window) WithheldOf(cores int, usable float64) float64 {
	available := w.Cores
	if available <= 0 {
		available = float64(cores)
	}
	if available <= 0 || w.Duration <= 0 {
		return 0
	}
	steal, foreign := unit(w.Steal), unit(w.Foreign)
	used := unit((w.EngineCPU + w.ClientCPU).Seconds() / (w.Duration.Seconds() * available))
	share := 1.0
	if usable > 0 {
		share = min(1, usable/available)
	}
	wanted := min(1, steal+foreign+used)
	if used == 0 { // unknown
		wanted = 1
	}
	left := 1.0
	if steal > 0 {
		left -= steal / wanted
	}
	if wanted >= busyShare && foreign > 0 {
		left *= min(1, max(0, 1-steal-foreign)/(max(1-steal, 1-mostWithheld)*share))
	}
	return max(0, -math.Log(max(left, 1-mostWithheld))) // never -0
}

// unit limits a share to 0..1; what is no number is 0.
func unit(share float64) float64 {
	if !(share > 0) {
		return 0
	}
	return min(share, 1)
}

// Withheld is the mean of the windows', by their durations.
func (m Measurement) Withheld(cores int) float64 { return m.WithheldOf(cores, 0) }

// WithheldOf is the mean of the windows', by their durations.
func (m Measurement) WithheldOf(cores int, usable float64) float64 {
	sum, seconds := 0.0, 0.0
	for _, w := range m.Windows {
		sum += w.WithheldOf(cores, usable) * w.Duration.Seconds()
		seconds += w.Duration.Seconds()
	}
	if seconds == 0 {
		return 0
	}
	return sum / seconds
}
