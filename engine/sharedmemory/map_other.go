//go:build !linux

package sharedmemory

import "tuner/engine/fault"

// mapFile refuses a region: files for shared memory have no folder here.
func mapFile(_, key string, _, _, _ uint64) ([]byte, error) {
	return nil, fault.Errorf(fault.Internal, "Unable to open shared memory region: '%s'", key)
}

func (*region) unmap() {}
