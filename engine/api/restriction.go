package api

// Category is a group of calls of the protocol that an operator may restrict, by Triton's names.
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

// Restriction is the header of HTTP, or the key of gRPC's metadata, that a call of a restricted
// category must have.
type Restriction struct {
	Header string // as the client sends it, with the prefix
	Value  string
}

// Restrictions lists the restricted categories. The others are open to everybody.
type Restrictions map[Category]Restriction
