// Package sharedmemory has the regions of system shared memory that clients register, so that the
// tensors of programs on the same machine need not travel over a connection.
//
// The front ends pass it the calls of clients, and the places of tensors in requests. A region is a
// part of a file in /dev/shm, mapped once. Clients can write to it, and shorten its file, at any time.
// So no other code gets its memory: inputs are copied out of it, and outputs into it. Such a copy
// returns an error where the file has become too short. Without the copy, ONNX Runtime would read
// memory that changes after its checks, and the end of the file would end the process.
//
// There are no regions of CUDA's memory.
package sharedmemory

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"tuner/engine/buffers"
	"tuner/engine/fault"
)

// Bounds on what clients may register.
const (
	// maxRegions bounds the mappings. Linux gives a process 65,530 of them, and Go ends without one.
	maxRegions = 16 << 10
	// maxMapped bounds the bytes of all regions. A process has 128 times as many addresses.
	maxMapped = 1 << 40
	maxName   = 1 << 10 // bytes
)

// reserved begins the keys of regions that Triton's Python backend makes for itself. Newer Tritons
// refuse them, since a client that writes there can run code (CVE-2025-23319).
const reserved = "triton_python_backend_shm_region_"

// Regions are the registered regions. A nil Regions belongs to a server that allows none. All methods
// are safe for concurrent use.
type Regions struct {
	mu     sync.RWMutex
	byName map[string]*region
	mapped uint64 // bytes of all regions

	copies buffers.Pool // for inputs
}

// Region describes a region.
type Region struct {
	Name   string `json:"name"`
	Key    string `json:"key"`    // name of its file
	Offset uint64 `json:"offset"` // of its first byte in the file
	Size   uint64 `json:"byte_size"`
}

// region is a mapped region.
type region struct {
	Region
	memory []byte       // mapped; the file behind it may be shorter by now
	users  atomic.Int64 // spans; none is added without Regions.mu
}

// New returns a set without regions. The caller closes it.
func New() *Regions { return &Regions{byName: map[string]*region{}} }

// Register maps size bytes of the file of a key, from an offset on. Texts and order of the checks are
// Triton's.
func (r *Regions) Register(name, key string, offset, size uint64) error {
	switch {
	case r == nil:
		return fault.Errorf(fault.Unsupported, "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.")
	case strings.HasPrefix(strings.TrimLeft(key, "/"), reserved):
		return fault.Errorf(fault.InvalidArgument, "cannot register shared memory region '%s' with key '%s' as the key contains the reserved prefix '%s'", name, key, reserved)
	case len(name) > maxName || !utf8.ValidString(name) || !utf8.ValidString(key):
		return fault.Errorf(fault.InvalidArgument, "cannot register a shared memory region: name and key must be UTF-8, and the name at most %d bytes", maxName)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.byName[name] != nil:
		return fault.Errorf(fault.AlreadyExists, "shared memory region '%s' already in manager", name)
	case len(r.byName) >= maxRegions:
		return fault.Errorf(fault.Exhausted, "cannot register shared memory region '%s': there are %d regions, unregister one first", name, maxRegions)
	}
	memory, err := mapFile(name, key, offset, size, maxMapped-r.mapped)
	if err != nil {
		return err
	}
	r.byName[name] = &region{Region: Region{name, key, offset, size}, memory: memory}
	r.mapped += size
	return nil
}

// Status lists a region, or all in the order of their names if the name is empty.
func (r *Regions) Status(name string) ([]Region, error) {
	list := []Region{}
	if r != nil {
		r.mu.RLock()
		defer r.mu.RUnlock()
		for _, one := range r.byName {
			if name == "" || one.Name == name {
				list = append(list, one.Region)
			}
		}
	}
	if name != "" && len(list) == 0 {
		return nil, fault.Errorf(fault.NotFound, "Unable to find system shared memory region: '%s'", name)
	}
	slices.SortFunc(list, func(a, b Region) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Unregister forgets a region, and refuses one that a request uses. An unknown name is no error.
func (r *Regions) Unregister(name string) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	gone := r.remove(name)
	isUsed := r.byName[name] != nil
	r.mu.Unlock()
	if isUsed {
		return fault.Errorf(fault.Internal, "Cannot unregister shared memory region '%s', it is currently in use.", name)
	}
	gone.unmap()
	return nil
}

// UnregisterAll forgets all regions but those that requests use. Its error names those.
func (r *Regions) UnregisterAll() error {
	if r == nil {
		return nil
	}
	var gone []*region
	var used []string
	r.mu.Lock()
	for name := range r.byName {
		if one := r.remove(name); one != nil {
			gone = append(gone, one)
		} else {
			used = append(used, name)
		}
	}
	r.mu.Unlock()
	for _, one := range gone {
		one.unmap()
	}
	if len(used) == 0 {
		return nil
	}
	slices.Sort(used)
	return fault.Errorf(fault.Internal, "Failed to unregister the following system shared memory regions: %s ,", strings.Join(used, " ,"))
}

// Close forgets all regions. One that a request still uses stays until the process ends.
func (r *Regions) Close() { _ = r.UnregisterAll() }

// remove takes a region out that nobody uses, for the caller to unmap. It returns nil without one.
// The caller holds r.mu.
func (r *Regions) remove(name string) *region {
	one := r.byName[name]
	if one == nil || one.users.Load() > 0 {
		return nil
	}
	delete(r.byName, name)
	r.mapped -= one.Size
	return one
}

// CUDA's part of the protocol: a region of another kind than asked for is named as such.

// StatusCUDA is Status for CUDA's memory, of which no region can be registered.
func (r *Regions) StatusCUDA(name string) error {
	if name == "" {
		return nil
	}
	if _, err := r.Status(name); err == nil {
		return fault.Errorf(fault.NotFound, "The region named '%s' is registered as system shared memory, not CUDA shared memory", name)
	}
	return fault.Errorf(fault.NotFound, "Unable to find cuda shared memory region: '%s'", name)
}

// RegisterCUDA refuses a region of CUDA's memory, in the words of a Triton that is built without it.
func (r *Regions) RegisterCUDA(name string) error {
	if r == nil {
		return r.Register(name, "", 0, 0)
	}
	return fault.Errorf(fault.InvalidArgument, "failed to register CUDA shared memory region: '%s', GPUs not supported", name)
}

// span is a part of a region that a request uses. The region stays mapped until it is closed.
type span struct {
	region       *region
	offset, size uint64 // within the region
}

// open returns a part of a region. It checks the part against the region alone, and the copies against
// the file.
func (r *Regions) open(name []byte, offset, size uint64) (span, error) {
	var one *region
	if r != nil {
		r.mu.RLock()
		defer r.mu.RUnlock()
		one = r.byName[string(name)]
	}
	switch {
	case one == nil:
		return span{}, fault.Errorf(fault.NotFound, "Unable to find shared memory region: '%s'", name)
	case offset >= one.Size:
		return span{}, fault.Errorf(fault.InvalidArgument, "Invalid offset for shared memory region: '%s'", name)
	case size > math.MaxUint64-offset: // where Triton 24.10 is wrong, in the words of newer ones
		return span{}, fault.Errorf(fault.InvalidArgument, "Integer overflow detected: byte_size (%d) + offset (%d) exceeds maximum value (%d) for region '%s'", size, offset, uint64(math.MaxUint64), name)
	// Triton 24.10 computes the last byte, which an empty part at the beginning does not have
	case offset+size > one.Size, offset+size == 0:
		return span{}, fault.Errorf(fault.InvalidArgument, "Invalid offset + byte size for shared memory region: '%s'", name)
	}
	one.users.Add(1)
	return span{one, offset, size}, nil
}

func (s span) close() { s.region.users.Add(-1) }

func (s span) memory() []byte { return s.region.memory[s.offset : s.offset+s.size] }

// read copies the span to dst, which has its size.
func (s span) read(dst []byte) error {
	if copied(dst, s.memory()) {
		return nil
	}
	return fault.Errorf(fault.InvalidArgument, "cannot read shared memory region '%s': its file is shorter than when it was registered", s.region.Name)
}

// write copies src to the beginning of the span, which is long enough.
func (s span) write(src []byte) error {
	if copied(s.memory(), src) {
		return nil
	}
	return fault.Errorf(fault.InvalidArgument, "cannot write to shared memory region '%s': its file is shorter than when it was registered, or /dev/shm is full", s.region.Name)
}
