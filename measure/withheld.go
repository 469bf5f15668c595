package measure

import "math"

const (
	// busyShare is the share of the cores that engine, clients and others must use together before
	// others take something away. Below it, others run on cores that would idle. It is less than 1,
	// since threads that wait for each other leave some idle time even on busy cores.
	busyShare = 0.8
	// mostWithheld caps the share that others withheld: the logarithm of a share of zero does not
	// exist.
	mostWithheld = 0.95
)

// Withheld measures the CPU time that others took and that engine and clients could have used.
// Others are other processes of the machine, and the hypervisor. Withheld is −ln of the share that
// was left, ≥ 0. So throughput is expected to fall by the factor exp(−Withheld). cores is the
// number of cores that the process may use. A window with its own Cores uses those.
//
// The rules:
//
//   - The hypervisor takes only from processors that want to run, so its share is of these.
//   - Other processes take only where the window leaves no cores idle, and then from the rest after
//     the hypervisor.
//   - On cores that are all busy, the share left is 1 − steal − foreign.
//   - If the work of engine and clients is unknown, the cores count as busy.
//   - If the number of cores is unknown, Withheld is 0.
//   - The quota of a cgroup withholds nothing (Throttled): it is part of the machine. Other
//     processes within it count as foreign.
func (w Window) Withheld(cores int) float64 { return w.WithheldOf(cores, 0) }

// WithheldOf is Withheld for engine and clients that can use at most usable cores' worth of CPU
// time, such as a single thread. Other processes take nothing from them until they use more than
// the other cores. 0: unknown, all cores.
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
	return max(0, -math.Log(max(left, 1-mostWithheld))) // without max it could be -0
}

// unit limits a share to 0..1. NaN becomes 0.
func unit(share float64) float64 {
	if !(share > 0) {
		return 0
	}
	return min(share, 1)
}

// Withheld returns the mean over the windows, weighted by duration.
func (m Measurement) Withheld(cores int) float64 { return m.WithheldOf(cores, 0) }

// WithheldOf returns the mean over the windows, weighted by duration.
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
