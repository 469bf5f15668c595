package meter

import (
	"time"

	"tuner/internal/hostinfo"
)

// taken is the CPU time that others took from server and clients, as shares of the CPU time that
// these may use, 0..1.
type taken struct {
	steal   float64 // by the hypervisor
	foreign float64 // by other processes
	// share of the allowed processors' time in which the quota of a cgroup stopped threads
	throttled float64
}

// takenOf computes it for an interval. own is the CPU time of server and clients, with their
// children.
//
// If the cgroup's quota is less than the allowed processors, the quota is the machine. Others
// outside the cgroup then take only the part of their time that exceeds the processors beyond the
// quota. Others inside the cgroup take all that they use. The time of interrupts belongs to nobody:
// on a machine under load these are mostly the load's own packets.
func takenOf(u hostinfo.AllowanceUsage, own time.Duration) taken {
	total := float64(u.Total())
	if total <= 0 || u.Quota <= 0 {
		return taken{}
	}
	// the counters have different ticks, so own may exceed busy
	foreign := max(0, float64(u.Busy-u.Interrupts-own))
	steal := float64(u.Steal)
	inside := 0.0
	if u.Quota < 1 {
		inside = min(foreign, max(0, float64(u.Group-own)))
	}
	granted := u.Quota * total
	outside := foreign - inside
	kept := 1.0 // share of the time of others outside that the quota would have granted
	if all := outside + steal; u.Quota < 1 && all > 0 {
		kept = max(0, all-(total-granted)) / all
	}
	return taken{
		steal:     min(1, kept*steal/granted),
		foreign:   min(1, (inside+kept*outside)/granted),
		throttled: min(1, float64(u.Throttled)/total),
	}
}
