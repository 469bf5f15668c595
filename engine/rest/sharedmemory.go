package rest

import (
	"tuner/engine/api"
	"tuner/engine/fault"
	"tuner/engine/rest/document"
	"tuner/engine/sharedmemory"
)

// sharedMemory answers calls about regions of shared memory.
func (f *Frontend) sharedMemory(b *reader, at *route) {
	name, regions := string(at.region), f.options.Regions
	var err error
	switch {
	case at.verb == memoryStatus && at.memory == cuda:
		if err = regions.StatusCUDA(name); err == nil {
			reply(b.ctx, []sharedmemory.Region{}, nil)
		}
	case at.verb == memoryStatus:
		var list []sharedmemory.Region
		if list, err = regions.Status(name); err == nil {
			reply(b.ctx, list, nil)
		}
	case at.verb == memoryRegister && at.region == nil:
		err = fault.Errorf(fault.InvalidArgument, "'region name' is necessary to register %s shared memory region", at.memory)
	case at.verb == memoryRegister && at.memory == cuda:
		err = regions.RegisterCUDA(name)
	case at.verb == memoryRegister:
		err = register(b, regions, name)
	case at.memory == cuda: // there is no region of that kind
	case at.region == nil:
		err = regions.UnregisterAll()
	default:
		err = regions.Unregister(name)
	}
	if err != nil {
		fail(b.ctx, err)
		return
	}
	b.ctx.SetContentType(api.ContentTypeJSON) // of an empty answer, too
}

// register reads the rest of a registration. A server without regions does not read it.
func register(b *reader, regions *sharedmemory.Regions, name string) error {
	if regions == nil {
		return regions.Register(name, "", 0, 0)
	}
	d, err := requireDocument(b)
	if err != nil {
		return err
	}
	i := d.Find(0, "key")
	if i == document.None {
		return fault.Errorf(fault.InvalidArgument, "Shared memory register request has no 'key' field")
	}
	key, err := d.Text(i)
	if err != nil {
		return err
	}
	var offset, size uint64
	if i := d.Find(0, "offset"); i != document.None {
		if offset, err = d.Unsigned(i); err != nil {
			return err
		}
	}
	if i = d.Find(0, "byte_size"); i == document.None {
		return fault.Errorf(fault.InvalidArgument, "Shared memory register request has no 'byte_size' field")
	}
	if size, err = d.Unsigned(i); err != nil {
		return err
	}
	return regions.Register(name, string(key), offset, size)
}

// place is where a tensor lies in a region.
type place struct {
	region       []byte
	offset, size uint64
}

// place reads the place of a tensor from its parameters. As in Triton, the numbers must be numbers even
// without a region.
func (r *inferRequest) place(parameters int32) (at place, err error) {
	d := &r.document
	if parameters == document.None {
		return at, nil
	}
	if i := d.Find(parameters, "shared_memory_region"); i != document.None {
		if at.region, err = d.Text(i); err != nil {
			return at, document.Unable("shared_memory_region", err)
		}
	}
	for _, number := range [...]struct {
		field string
		value *uint64
	}{{"shared_memory_offset", &at.offset}, {"shared_memory_byte_size", &at.size}} {
		if i := d.Find(parameters, number.field); i != document.None {
			if *number.value, err = d.Unsigned(i); err != nil {
				return at, document.Unable(number.field, err)
			}
		}
	}
	return at, nil
}

// onlyRegion refuses an output that is wanted in a region and in another form.
func (r *inferRequest) onlyRegion(output int32) error {
	d := &r.document
	p := d.Find(output, "parameters")
	if p == document.None || d.Find(p, "shared_memory_region") == document.None {
		return nil
	}
	if d.Find(p, "classification") != document.None {
		return fault.Errorf(fault.InvalidArgument, "Output can't set both 'shared_memory_region' and 'classification'")
	}
	if i := d.Find(p, "binary_data"); i != document.None {
		switch isBinary, err := d.Bool(i); {
		case err != nil:
			return document.Within("Unable to set 'binary_data'", err)
		case isBinary:
			return fault.Errorf(fault.InvalidArgument, "Output can't set both 'shared_memory_region' and 'binary_data'")
		}
	}
	return nil
}
