package spec

import (
	"slices"
	"strings"
)

// CSVLayout says how the CSV files of the results are called, and which columns they have. Zero values stand for DefaultCSV's.
type CSVLayout struct {
	Inference CSVFile
	GPU       CSVFile
	Server    CSVFile
}

// CSVFile is one of them.
type CSVFile struct {
	Name   string   // of the file, below the folder results
	Fields []string // columns by Model Analyzer's names: some of CSVFields
}

// The files that a CSVLayout describes.
const (
	CSVInference = "inference"
	CSVGPU       = "gpu"
	CSVServer    = "server"
)

// CSVBackendParameter begins the fields that show a parameter of the configuration: backend_parameter/intra_op_thread_count.
const CSVBackendParameter = "backend_parameter/"

// DefaultCSV is Model Analyzer's own layout.
func DefaultCSV() CSVLayout {
	return CSVLayout{
		Inference: CSVFile{"metrics-model-inference.csv", []string{"model_name", "batch_size", "concurrency", "model_config_path", "instance_group",
			"max_batch_size", "satisfies_constraints", "perf_throughput", "perf_latency_p99"}},
		GPU: CSVFile{"metrics-model-gpu.csv", []string{"model_name", "gpu_uuid", "batch_size", "concurrency", "model_config_path", "instance_group",
			"satisfies_constraints", "gpu_used_memory", "gpu_utilization", "gpu_power_usage"}},
		Server: CSVFile{"metrics-server-only.csv", []string{"model_name", "gpu_uuid", "gpu_used_memory", "gpu_utilization", "gpu_power_usage"}},
	}
}

// Or is the layout with what it leaves open taken from another one.
func (l CSVLayout) Or(other CSVLayout) CSVLayout {
	return CSVLayout{l.Inference.or(other.Inference), l.GPU.or(other.GPU), l.Server.or(other.Server)}
}

func (f CSVFile) or(other CSVFile) CSVFile {
	if f.Name == "" {
		f.Name = other.Name
	}
	if f.Fields == nil {
		f.Fields = other.Fields
	}
	return f
}

// CSVFields lists the fields that a file may have as columns; the inference file also has those that begin with CSVBackendParameter.
func CSVFields(file string) []string {
	load := []string{"model_name", "batch_size", "concurrency", "request_rate", "model_config_path", "instance_group", "satisfies_constraints"}
	gpu := []string{"gpu_uuid", "gpu_used_memory", "gpu_free_memory", "gpu_total_memory", "gpu_utilization", "gpu_power_usage"}
	switch file {
	case CSVInference:
		return append(load, "max_batch_size", "perf_throughput", "perf_latency_avg", "perf_latency_p90", "perf_latency_p95", "perf_latency_p99",
			"perf_client_send_recv", "perf_client_response_wait", "perf_server_queue", "perf_server_compute_input", "perf_server_compute_infer",
			"perf_server_compute_output", "cpu_used_ram", "cpu_available_ram")
	case CSVGPU:
		return append(load, gpu...)
	}
	return append([]string{"model_name"}, gpu...)
}

// IsCSVField reports whether a file may have a field as a column.
func IsCSVField(file, field string) bool {
	name, isParameter := strings.CutPrefix(field, CSVBackendParameter)
	return slices.Contains(CSVFields(file), field) || isParameter && name != "" && file == CSVInference
}
