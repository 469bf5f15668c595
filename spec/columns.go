package spec

import (
	"strings"

	"tuner/modelconfig"
)

// Columns are the columns of the CSV files, by Model Analyzer's names and in the file's order; nil is Model Analyzer's own choice.
type Columns struct{ Inference, GPU, Server []string }

// BackendParameter begins the name of a column that shows a parameter of the configuration: backend_parameter/intra_op_thread_count.
const BackendParameter = "backend_parameter/"

// InferenceFields lists the columns that the file of the configurations may have, besides those that begin with BackendParameter.
func InferenceFields() []string {
	return []string{"model_name", "batch_size", "concurrency", "request_rate", "model_config_path", "instance_group", "max_batch_size",
		"satisfies_constraints", "perf_throughput", "perf_latency_avg", "perf_latency_p90", "perf_latency_p95", "perf_latency_p99",
		"perf_server_queue", "perf_server_compute_input", "perf_server_compute_infer", "perf_server_compute_output", "cpu_used_ram"}
}

// GPUFields lists the columns that the file of the GPUs may have.
func GPUFields() []string {
	return []string{"model_name", "gpu_uuid", "batch_size", "concurrency", "request_rate", "model_config_path", "instance_group",
		"satisfies_constraints", "gpu_used_memory", "gpu_total_memory", "gpu_utilization", "gpu_power_usage"}
}

// ServerFields lists the columns that the file of the server alone may have.
func ServerFields() []string {
	return []string{"model_name", "gpu_uuid", "gpu_used_memory", "gpu_total_memory", "gpu_utilization", "gpu_power_usage"}
}

// columns reads a list of columns; others with the prefix are allowed too, where there is one.
func columns(target *[]string, allowed []string, prefix string) func(value) {
	return func(v value) {
		var list []string
		for _, e := range v.list() {
			name, ok := e.text()
			if !ok {
				continue
			}
			if isOther := prefix != "" && strings.HasPrefix(name, prefix) && len(name) > len(prefix); isOther {
				list = appendOnce(e, list, name)
				continue
			}
			if word, ok := e.column(allowed, prefix); ok {
				list = appendOnce(e, list, word)
			}
		}
		*target = list
	}
}

// column reads the name of a column.
func (v value) column(allowed []string, prefix string) (string, bool) {
	for _, name := range allowed {
		if v.node.Value == name {
			return name, true
		}
	}
	e := Error{Problem: "is not a column of this file", Allowed: strings.Join(allowed, ", ")}
	if prefix != "" {
		e.Allowed += ", " + prefix + "NAME"
	}
	if near := modelconfig.Nearest(v.node.Value, allowed); near != "" {
		e.Hint = "did you mean \"" + near + "\"?"
	}
	v.fail(e)
	return "", false
}
