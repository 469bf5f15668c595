package hostinfo

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Core is a processor (hardware thread) on which a process may run.
type Core struct {
	ID int `json:"id"` // number that the kernel gives it
	// lowest processor of the physical core; the processor itself if that is unknown. Processors with
	// the same sibling share its units
	Sibling int `json:"sibling"`
	Node    int `json:"node"` // NUMA node with the memory near it; 0 on a machine without nodes
}

// Cores returns the processors on which this process may run. Neighbours in the list are near each
// other: it is in the order of nodes, physical cores and processors.
func Cores() ([]Core, error) { return readCores(os.DirFS("/")) }

func readCores(root fs.FS) ([]Core, error) {
	allowed, err := readAffinity(root)
	if err != nil {
		return nil, fmt.Errorf("cannot read the processors of this process: %w", err)
	}
	nodes, err := readNUMA(root)
	if err != nil {
		return nil, fmt.Errorf("cannot read the NUMA nodes: %w", err)
	}
	var cores []Core
	for _, id := range allowed {
		core := Core{ID: id, Sibling: id}
		text, err := fs.ReadFile(root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", id))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a container may hide it
			return nil, fmt.Errorf("cannot read the physical core of processor %d: %w", id, err)
		}
		siblings, err := parseCPUList(string(text))
		if err != nil {
			return nil, fmt.Errorf("cannot read the physical core of processor %d: %w", id, err)
		}
		if len(siblings) > 0 {
			core.Sibling = slices.Min(siblings)
		}
		for _, n := range nodes {
			if slices.Contains(n.CPUs, id) {
				core.Node = n.ID
			}
		}
		cores = append(cores, core)
	}
	slices.SortFunc(cores, func(a, b Core) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Sibling, b.Sibling), cmp.Compare(a.ID, b.ID))
	})
	return cores, nil
}
