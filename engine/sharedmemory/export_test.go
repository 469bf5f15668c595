package sharedmemory

// For tests outside of the package.
const (
	MaxRegions = maxRegions
	MaxMapped  = maxMapped
	MaxName    = maxName
)

// Mapped returns the bytes of all regions.
func (r *Regions) Mapped() uint64 { return r.mapped }

// Guarded is guarded.
func Guarded(f func()) bool { return guarded(f) }
