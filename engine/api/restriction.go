package api

// Category is a group of calls of the protocol that an operator may restrict: Triton's names.
type Category string

// The categories.
const (
	CategoryHealth          Category = "health"
	CategoryMetadata        Category = "metadata"
	CategoryInference       Category = "inference"
	CategorySharedMemory    Category = "shared-memory"
	CategoryModelConfig     Category = "model-config"
	CategoryModelRepository Category = "model-repository"
	CategoryStatistics      Category = "statistics"
	CategoryTrace           Category = "trace"
	CategoryLogging         Category = "logging"
)

// Categories lists all categories.
func Categories() []Category {
	return []Category{
		CategoryHealth, CategoryMetadata, CategoryInference, CategorySharedMemory, CategoryModelConfig,
		CategoryModelRepository, CategoryStatistics, CategoryTrace, CategoryLogging,
	}
}

// Restriction is what a call of a restricted category must bring: a header of HTTP, or a key of gRPC's metadata.
type Restriction struct {
	Header string // as the client sends it, prefix included
	Value  string
}

// Restrictions say which categories are restricted; the others are open to everybody.
type Restrictions map[Category]Restriction
