package grpcapi

import (
	"math"

	"tuner/engine/fault"
)

// find returns the parameter with a key, or nil.
func find(list []parameter, key string) *parameter {
	for i := range list {
		if string(list[i].key) == key {
			return &list[i]
		}
	}
	return nil
}

// sharedMemory refuses tensors in shared memory, and invalid parameters for it. No region can be
// registered, so none is found.
func sharedMemory(parameters []parameter, tensor []byte) error {
	region := find(parameters, "shared_memory_region")
	if region != nil && region.kind != stringParam {
		return fault.Errorf(fault.InvalidArgument, "invalid value type for 'shared_memory_region' parameter for tensor '%s', expected string_param.", tensor)
	}
	for _, key := range []string{"shared_memory_offset", "shared_memory_byte_size"} {
		switch p := find(parameters, key); {
		case p != nil && region == nil:
			return fault.Errorf(fault.InvalidArgument, "'%s' can not be specified without 'shared_memory_region' parameter for tensor '%s'", key, tensor)
		case p != nil && p.kind != int64Param:
			return fault.Errorf(fault.InvalidArgument, "invalid value type for '%s' parameter for tensor '%s', expected int64_param.", key, tensor)
		case p == nil && region != nil && key == "shared_memory_byte_size":
			return fault.Errorf(fault.InvalidArgument, "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor '%s'", tensor)
		}
	}
	if region != nil {
		return fault.Errorf(fault.NotFound, "Unable to find shared memory region: '%s'", region.text)
	}
	return nil
}

// classification returns how many classes are wanted of an output. 0: the output itself is.
func classification(out *output) (uint32, error) {
	switch p := find(out.parameters, "classification"); {
	case p == nil:
		return 0, nil
	case p.kind != int64Param:
		return 0, fault.Errorf(fault.InvalidArgument, "invalid value type for 'classification' parameter, expected int64_param")
	case int64(p.bits) <= 0:
		return 0, fault.Errorf(fault.InvalidArgument, "invalid value for 'classification' parameter, expected >= 0")
	default:
		return uint32(min(p.bits, math.MaxUint32)), nil
	}
}
