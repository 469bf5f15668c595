package sidebyside

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"tuner/internal/hostinfo"
)

// Machine returns a line about the machine of the figures.
func Machine(ctx context.Context) string {
	h := hostinfo.Read(ctx)
	return fmt.Sprintf("Machine: %s, %d of %d hardware threads, %.0f GiB, %s, kernel %s.",
		h.CPU.Model, h.UsableCores(), h.CPU.Logical, float64(h.Memory.Usable())/(1<<30), h.Platform, h.Kernel)
}

// Foreign returns the share of the machine's CPU time, 0..1, that other processes or virtual
// machines took during wall, while our processes took ours.
func Foreign(machine hostinfo.CPUUsage, ours, wall time.Duration) float64 {
	return max(0, (machine.Busy+machine.Steal-ours).Seconds()/wall.Seconds()/float64(runtime.NumCPU()))
}
