package rest

import (
	"encoding/json"

	"tuner/engine/fault"
)

// sharedMemory answers calls about shared memory as package grpcapi does. No region can be
// registered. Clients may list regions, or unregister all of them, before they start. They get the
// answer of a server that has no region yet.
func (f *Frontend) sharedMemory(b *reader, at *route) {
	switch {
	case at.verb == memoryRegister:
		fail(b.ctx, fault.Errorf(fault.Unsupported, "%s shared memory is not supported: send tensors in the request", at.memory))
	case at.verb == memoryStatus && len(at.region) > 0:
		fail(b.ctx, fault.Errorf(fault.NotFound, "Unable to find %s shared memory region: '%s'", at.memory, at.region))
	case at.verb == memoryStatus:
		reply(b.ctx, json.RawMessage("[]"), nil)
	}
}
