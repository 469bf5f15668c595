package export

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tuner/export/azuresize"
	"tuner/internal/exit"
)

// azureReserve is the memory for the machine's system and Azure's containers beside Triton, in MiB.
// It is an estimate.
const azureReserve = 1024

// instanceType returns the user's size, or the smallest one with the server's cores, memory and
// GPUs.
func instanceType(d Deployment, chosen string) (string, error) {
	if chosen != "" {
		return chosen, nil
	}
	gpu, err := azureGPU(d)
	if err != nil {
		return "", err
	}
	size, ok := azuresize.Smallest(gpu, d.GPUs, d.CPUs, d.Memory+azureReserve)
	if !ok {
		return "", exit.Usagef("no Azure size is known with %d cores, %d MiB%s: name one with --instance-type", d.CPUs, d.Memory, gpusText(d.GPUs, gpu))
	}
	return size, nil
}

func gpusText(n int, gpu string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d × %s", n, gpu)
}

// azureGPU returns the kind of GPU on which all models with GPUs were measured. It returns "" for a
// server without GPUs.
func azureGPU(d Deployment) (string, error) {
	if d.GPUs == 0 {
		return "", nil
	}
	names, kinds := map[string]bool{}, map[string]bool{}
	for _, m := range d.Models {
		if m.GPUs() == 0 {
			continue
		}
		for _, gpu := range m.Host.GPUs {
			names[gpu.Name], kinds[azuresize.KindOfGPU(gpu.Name)] = true, true
		}
	}
	if kind := slices.Collect(maps.Keys(kinds)); len(kind) == 1 && kind[0] != "" {
		return kind[0], nil
	}
	return "", exit.Usagef("no Azure size is known with GPUs like those that were measured (%s): name one with --instance-type",
		cmp.Or(strings.Join(slices.Sorted(maps.Keys(names)), ", "), "unknown ones"))
}
