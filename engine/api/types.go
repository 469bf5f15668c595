// Package api has the inference protocol (KServe v2 with Triton's extensions) for both sides: the
// values that travel as JSON, and a client.
//
// The engine answers with these types. tuner (runner, load, precision) talks to any server of that
// protocol, the bundled engine or a real Triton, through Client, and never imports the engine. The
// package is pure Go. It neither retries nor measures: the caller does that.
package api

// Extensions in a server's metadata that matter to a client.
const (
	ExtensionStatistics      = "statistics"
	ExtensionModelRepository = "model_repository"
)

// HTTP headers and content types of the protocol.
const (
	// bytes of JSON in front of the binary tensors
	HeaderLength     = "Inference-Header-Content-Length"
	ContentTypeJSON  = "application/json"
	ContentTypeBytes = "application/octet-stream"
)

// States of a model version in the repository index.
const (
	StateUnknown     = "UNKNOWN"
	StateReady       = "READY"
	StateUnavailable = "UNAVAILABLE"
	StateLoading     = "LOADING"
	StateUnloading   = "UNLOADING"
)

// Error is the body of every failed HTTP answer.
type Error struct {
	Text string `json:"error"`
}

// ServerMetadata describes a server.
type ServerMetadata struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`
}

// ModelMetadata describes a model. Shapes include the batch dimension; -1 is any size.
type ModelMetadata struct {
	Name     string           `json:"name"`
	Versions []string         `json:"versions"`
	Platform string           `json:"platform"`
	Inputs   []TensorMetadata `json:"inputs"`
	Outputs  []TensorMetadata `json:"outputs"`
}

// TensorMetadata describes an input or output.
type TensorMetadata struct {
	Name     string  `json:"name"`
	Datatype string  `json:"datatype"`
	Shape    []int64 `json:"shape"`
}

// IndexEntry is a line of the repository index. A model that was never loaded has only a name.
type IndexEntry struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   string `json:"state,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// IndexRequest is the request for the repository index.
type IndexRequest struct {
	Ready bool `json:"ready"` // list only ready models
}

// LoadRequest and UnloadRequest have optional parameters: "config" (the whole model configuration
// as JSON text), "file:<version>/<path>" (base64), "unload_dependents".
type LoadRequest struct {
	Parameters map[string]any `json:"parameters,omitempty"`
}

// Statistics is the answer to a statistics request.
type Statistics struct {
	ModelStats []ModelStatistics `json:"model_stats"`
}

// ModelStatistics holds the counters of one version of a model since it was loaded.
type ModelStatistics struct {
	Name           string              `json:"name"`
	Version        string              `json:"version"`
	LastInference  uint64              `json:"last_inference"`  // milliseconds since 1970
	InferenceCount uint64              `json:"inference_count"` // rows
	ExecutionCount uint64              `json:"execution_count"` // executions of the model
	InferenceStats InferenceStatistics `json:"inference_stats"`
	// for decoupled models only: empty here
	ResponseStats map[string]ResponseStatistics `json:"response_stats"`
	BatchStats    []BatchStatistics             `json:"batch_stats"`
	MemoryUsage   []MemoryUsage                 `json:"memory_usage"`
}

// Duration is a sum of durations: their number, and their total in nanoseconds.
type Duration struct {
	Count uint64 `json:"count"`
	NS    uint64 `json:"ns"`
}

// InferenceStatistics counts per request. Each request of a batch counts the whole durations of its
// batch.
type InferenceStatistics struct {
	Success       Duration `json:"success"`
	Fail          Duration `json:"fail"`
	Queue         Duration `json:"queue"`
	ComputeInput  Duration `json:"compute_input"`
	ComputeInfer  Duration `json:"compute_infer"`
	ComputeOutput Duration `json:"compute_output"`
	CacheHit      Duration `json:"cache_hit"`
	CacheMiss     Duration `json:"cache_miss"`
}

// BatchStatistics counts per execution of a batch of BatchSize rows.
type BatchStatistics struct {
	BatchSize     uint64   `json:"batch_size"`
	ComputeInput  Duration `json:"compute_input"`
	ComputeInfer  Duration `json:"compute_infer"`
	ComputeOutput Duration `json:"compute_output"`
}

// ResponseStatistics is part of the protocol for decoupled models.
type ResponseStatistics struct {
	ComputeInfer  Duration `json:"compute_infer"`
	ComputeOutput Duration `json:"compute_output"`
	Success       Duration `json:"success"`
	Fail          Duration `json:"fail"`
	EmptyResponse Duration `json:"empty_response"`
	Cancel        Duration `json:"cancel"`
}

// MemoryUsage is the memory that a model reports, in bytes.
type MemoryUsage struct {
	Type     string `json:"type"`
	ID       int64  `json:"id"`
	ByteSize uint64 `json:"byte_size"`
}

// Announcement is the line of JSON that an engine child writes when all its listeners are up.
type Announcement struct {
	PID        int    `json:"pid"`
	HTTP       string `json:"http"`    // host:port; "": not served
	GRPC       string `json:"grpc"`    // host:port; "": not served
	Metrics    string `json:"metrics"` // host:port; "": not served
	ORTVersion string `json:"ort_version"`
	ORTLibrary string `json:"ort_library"` // path of the ONNX Runtime library
}
