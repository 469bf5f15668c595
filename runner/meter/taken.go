package meter

import (
	"time"

	"tuner/internal/hostinfo"
)

// taken is what others took of the CPU time that server and clients may use, as shares of it, 0..1.
type taken struct {
	steal     float64 // by the hypervisor
	foreign   float64 // by other processes
	throttled float64 // share of the allowed processors' time in which a cgroup's quota stopped threads
}

// takenOf tells it for an interval in which server and clients, with what they started, used own.
//
// Where the cgroup's quota is less than the allowed processors, it is the machine: others outside of the cgroup take from it
// only what exceeds the processors that the quota leaves alone, others inside of it take all that they use. What interrupts
// use is nobody's: on a machine under load these are mostly the load's own packets.
func takenOf(u hostinfo.AllowanceUsage, own time.Duration) taken {
	total := float64(u.Total())
	if total <= 0 || u.Quota <= 0 {
		return taken{}
	}
	foreign := max(0, float64(u.Busy-u.Interrupts-own)) // counters tick differently: own may seem to exceed busy
	steal := float64(u.Steal)
	inside := 0.0
	if u.Quota < 1 {
		inside = min(foreign, max(0, float64(u.Group-own)))
	}
	granted := u.Quota * total
	outside := foreign - inside
	kept := 1.0 // share of what others outside took that the quota would have granted
	if all := outside + steal; u.Quota < 1 && all > 0 {
		kept = max(0, all-(total-granted)) / all
	}
	return taken{
		steal:     min(1, kept*steal/granted),
		foreign:   min(1, (inside+kept*outside)/granted),
		throttled: min(1, float64(u.Throttled)/total),
	}
}
