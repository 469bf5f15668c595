package conformance

import "path"

// Difference is a way in which the engine knowingly answers otherwise than Triton.
type Difference struct {
	ID     string
	Reason string   // docs/conformance.md has the same
	Cases  []string // patterns of path.Match for the names of cases
}

// Differences are all that there are. The suite fails for one that is not among them, and for one of them that is gone.
var Differences = []Difference{
	{
		ID:     "later",
		Reason: "Shared memory, trace and log settings, classification, generate and compression are not there yet; the list of extensions says so.",
		Cases:  []string{"90-later/*", "01-server/metadata, plain", "01-server/metadata, with *", "20-grpc-server/ServerMetadata*"},
	},
}

// MaxDifferences is how many differences there may be at most.
const MaxDifferences = 10

// differenceOf returns the difference that explains the named case, or nil.
func differenceOf(name string) *Difference {
	for i := range Differences {
		for _, pattern := range Differences[i].Cases {
			if ok, err := path.Match(pattern, name); ok && err == nil {
				return &Differences[i]
			}
		}
	}
	return nil
}
