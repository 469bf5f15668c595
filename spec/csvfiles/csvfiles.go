// Package csvfiles has the names and the columns of Model Analyzer's CSV files, as analyze.yaml chooses them. It writes
// no file.
package csvfiles

import (
	"cmp"
	"slices"
	"strings"

	"tuner/internal/words"
	"tuner/spec/document"
)

// Files are the CSV files of the results.
type Files struct{ Inference, GPU, Server File }

// File has the name and the columns of a CSV file. Zero values mean Model Analyzer's own.
type File struct {
	Name    string   // in the folder results; only Model Analyzer's files can change it
	Columns []string // Model Analyzer's names, in the file's order
}

// Named returns the files with Model Analyzer's names for those without a name.
func (f Files) Named() Files {
	f.Inference.Name = cmp.Or(f.Inference.Name, "metrics-model-inference.csv")
	f.GPU.Name = cmp.Or(f.GPU.Name, "metrics-model-gpu.csv")
	f.Server.Name = cmp.Or(f.Server.Name, "metrics-server-only.csv")
	return f
}

// BackendParameter begins the name of a column with a parameter of the configuration:
// backend_parameter/intra_op_thread_count.
const BackendParameter = "backend_parameter/"

// IsUnmeasured reports whether a column stays empty since tuner does not measure its figures.
func IsUnmeasured(field string) bool {
	return slices.Contains([]string{"perf_client_send_recv", "perf_client_response_wait", "cpu_available_ram"}, field)
}

// InferenceFields lists the allowed columns in the file of the configurations, without those that
// begin with BackendParameter.
func InferenceFields() []string {
	return []string{"model_name", "batch_size", "concurrency", "request_rate", "model_config_path", "instance_group", "max_batch_size",
		"satisfies_constraints", "perf_throughput", "perf_latency_avg", "perf_latency_p90", "perf_latency_p95", "perf_latency_p99",
		"perf_client_send_recv", "perf_client_response_wait", "perf_server_queue", "perf_server_compute_input", "perf_server_compute_infer",
		"perf_server_compute_output", "cpu_used_ram", "cpu_available_ram"}
}

// GPUFields lists the allowed columns in the file of the GPUs.
func GPUFields() []string {
	return []string{"model_name", "gpu_uuid", "batch_size", "concurrency", "request_rate", "model_config_path", "instance_group",
		"satisfies_constraints", "gpu_used_memory", "gpu_free_memory", "gpu_total_memory", "gpu_utilization", "gpu_power_usage"}
}

// ServerFields lists the allowed columns in the file of the server without a model.
func ServerFields() []string {
	return []string{"model_name", "gpu_uuid", "gpu_used_memory", "gpu_free_memory", "gpu_total_memory", "gpu_utilization", "gpu_power_usage"}
}

// Columns returns a reader of a list of columns. Other names with the prefix are allowed too, unless it is empty.
func Columns(target *[]string, allowed []string, prefix string) func(document.Value) {
	return func(v document.Value) {
		var list []string
		for _, e := range v.List() {
			name, ok := e.Text()
			if !ok {
				continue
			}
			if isOther := prefix != "" && strings.HasPrefix(name, prefix) && len(name) > len(prefix); isOther {
				list = document.AppendOnce(e, list, name)
				continue
			}
			if word, ok := column(e, allowed, prefix); ok {
				list = document.AppendOnce(e, list, word)
			}
		}
		*target = list
	}
}

// column reads the name of a column.
func column(v document.Value, allowed []string, prefix string) (string, bool) {
	for _, name := range allowed {
		if v.Node.Value == name {
			return name, true
		}
	}
	e := document.Error{Problem: "is not a column of this file", Allowed: strings.Join(allowed, ", ")}
	if prefix != "" {
		e.Allowed += ", " + prefix + "NAME"
	}
	if near := words.Nearest(v.Node.Value, allowed); near != "" {
		e.Hint = "did you mean \"" + near + "\"?"
	}
	v.Fail(e)
	return "", false
}
