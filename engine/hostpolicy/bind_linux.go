package hostpolicy

import (
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"tuner/internal/hostinfo"
)

// mpolBind is MPOL_BIND of set_mempolicy(2): memory comes only from the given nodes.
const mpolBind = 2

// Bind restricts the calling operating-system thread, and all threads that it will start, to the
// policy's cores and memory. The caller must have locked its goroutine to the thread, and must let
// the thread end with the goroutine.
func (p Policy) Bind() error {
	cores, err := p.cores()
	if err != nil {
		return err
	}
	if len(cores) > 0 {
		var set unix.CPUSet
		for _, core := range cores {
			set.Set(core)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil { // 0: this thread
			//lint:ignore ST1005 Triton's wording
			return fmt.Errorf("Unable to set NUMA thread affinity: %w", err)
		}
	}
	if p.Node != NoNode {
		var nodes unix.CPUSet
		nodes.Set(p.Node)
		if err := unix.SetMemPolicy(mpolBind, &nodes); err != nil {
			//lint:ignore ST1005 Triton's wording
			return fmt.Errorf("Unable to set NUMA memory policy: %w", hostinfo.MemoryPolicyError(err))
		}
	}
	return nil
}

// Cores returns the number of cores on which the calling thread may run.
func Cores() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return runtime.NumCPU() // more cores than a set can name
	}
	return set.Count()
}

// cores returns the cores to run on. Without cpu-cores these are the cores of the node, since its
// memory is near only to them.
func (p Policy) cores() ([]int, error) {
	if len(p.Cores) > 0 || p.Node == NoNode {
		return p.Cores, nil
	}
	nodes, err := hostinfo.NUMANodes()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(nodes, func(n hostinfo.NUMANode) bool { return n.ID == p.Node })
	if i < 0 {
		return nil, fmt.Errorf("host policy %q: this machine has no NUMA node %d", p.Name, p.Node)
	}
	return nodes[i].CPUs, nil
}
