package main

import (
	"context"
	"fmt"

	"tuner/hostinfo"
)

// machine is a line about where the figures come from.
func machine(ctx context.Context) string {
	h := hostinfo.Read(ctx)
	return fmt.Sprintf("Machine: %s, %d of %d hardware threads, %.0f GiB, %s, kernel %s.",
		h.CPU.Model, h.UsableCores(), h.CPU.Logical, float64(h.Memory.Usable())/(1<<30), h.Platform, h.Kernel)
}
