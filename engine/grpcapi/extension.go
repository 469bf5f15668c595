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

// place is where a tensor lies in a region of shared memory.
type place struct {
	region       []byte
	offset, size uint64
}

// placeOf reads the place of a tensor from its parameters. It returns nil if the tensor is in no
// region.
func placeOf(parameters []parameter, tensor []byte) (*place, error) {
	if len(parameters) == 0 {
		return nil, nil
	}
	region := find(parameters, "shared_memory_region")
	if region != nil && region.kind != stringParam {
		return nil, fault.Errorf(fault.InvalidArgument, "invalid value type for 'shared_memory_region' parameter for tensor '%s', expected string_param.", tensor)
	}
	at := &place{}
	for _, number := range [...]struct {
		key   string
		value *uint64
	}{{"shared_memory_offset", &at.offset}, {"shared_memory_byte_size", &at.size}} {
		switch key, p := number.key, find(parameters, number.key); {
		case p != nil && region == nil:
			return nil, fault.Errorf(fault.InvalidArgument, "'%s' can not be specified without 'shared_memory_region' parameter for tensor '%s'", key, tensor)
		case p != nil && p.kind != int64Param:
			return nil, fault.Errorf(fault.InvalidArgument, "invalid value type for '%s' parameter for tensor '%s', expected int64_param.", key, tensor)
		case p == nil && region != nil && number.value == &at.size:
			return nil, fault.Errorf(fault.InvalidArgument, "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor '%s'", tensor)
		case p != nil: // a negative number is beyond every region, as in Triton
			*number.value = p.bits
		}
	}
	if region == nil {
		return nil, nil
	}
	at.region = region.text
	return at, nil
}

// classification returns how many classes are wanted of an output. 0: the output itself is. at is its
// place in a region, nil without one.
func classification(out *output, at *place) (uint32, error) {
	switch p := find(out.parameters, "classification"); {
	case p == nil:
		return 0, nil
	case p.kind != int64Param:
		return 0, fault.Errorf(fault.InvalidArgument, "invalid value type for 'classification' parameter, expected int64_param")
	case int64(p.bits) <= 0:
		return 0, fault.Errorf(fault.InvalidArgument, "invalid value for 'classification' parameter, expected >= 0")
	case at != nil:
		return 0, fault.Errorf(fault.InvalidArgument, "output can't set both 'shared_memory_region' and 'classification'")
	default:
		return uint32(min(p.bits, math.MaxUint32)), nil
	}
}
