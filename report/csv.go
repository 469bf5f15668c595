package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"tuner/analyze"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// WriteInferenceCSV writes metrics-model-inference.csv with Model Analyzer's columns, or those of the result's layout: a row for each load
// that a configuration was measured under, the best configuration first, and the loads that satisfy the constraints before those
// that do not. Figures have three decimals.
func WriteInferenceCSV(w io.Writer, r analyze.Result) error {
	columns := r.CSV.Or(spec.DefaultCSV()).Inference.Fields
	lines := [][]string{csvHeader(r, columns)}
	for _, x := range measuredPoints(r) {
		lines = append(lines, x.row(r, columns, measure.GPUWindow{}))
	}
	return writeCSV(w, lines)
}

// csvHeader is the first line of a file with these columns.
func csvHeader(r analyze.Result, columns []string) []string {
	titles := map[string]string{
		"model_name": "Model", "batch_size": "Batch", "concurrency": loadColumn(r), "request_rate": "Request Rate",
		"model_config_path": "Model Config Path", "instance_group": "Instance Group", "max_batch_size": "Max Batch Size",
		"satisfies_constraints": "Satisfies Constraints", "perf_throughput": "Throughput (infer/sec)", "perf_latency_avg": "Avg Latency (ms)",
		"perf_latency_p90": "p90 Latency (ms)", "perf_latency_p95": "p95 Latency (ms)", "perf_latency_p99": "p99 Latency (ms)",
		"perf_client_send_recv": "Client Send/Recv (ms)", "perf_client_response_wait": "Response Wait Time (ms)",
		"perf_server_queue": "Server Queue time (ms)", "perf_server_compute_input": "Server Compute Input time (ms)",
		"perf_server_compute_infer": "Server Compute Infer time (ms)", "perf_server_compute_output": "Server Compute Output time (ms)",
		"cpu_used_ram": "RAM Usage (MB)", "cpu_available_ram": "RAM Available (MB)", "gpu_uuid": "GPU UUID",
		"gpu_used_memory": "GPU Memory Usage (MB)", "gpu_free_memory": "GPU Memory Available (MB)", "gpu_total_memory": "GPU Memory Total (MB)",
		"gpu_utilization": "GPU Utilization (%)", "gpu_power_usage": "GPU Power Usage (W)",
	}
	header := make([]string, len(columns))
	for i, column := range columns {
		if header[i] = titles[column]; header[i] == "" {
			header[i] = column // backend_parameter/…
		}
	}
	return header
}

func loadColumn(r analyze.Result) string {
	if isRate(r) {
		return "Request Rate"
	}
	return "Concurrency"
}

// measuredPoint is a load of a configuration with the cells that it has in every file.
type measuredPoint struct {
	analyze.Point
	config                            analyze.Config
	batch, load, instances, satisfies string
}

// measuredPoints lists all loads in the order of the rows.
func measuredPoints(r analyze.Result) []measuredPoint {
	var list []measuredPoint
	for _, c := range r.Configs {
		for _, satisfies := range []string{"Yes", "No"} {
			for _, p := range c.Points {
				if (len(p.Misses) == 0) == (satisfies == "Yes") {
					batch := ""
					if p.Load.BatchSize > 0 {
						batch = strconv.Itoa(p.Load.BatchSize)
					}
					instances := ""
					if c.Setup.Instances > 0 {
						instances = fmt.Sprintf("%d:%s", c.Setup.Instances, deviceOf(c))
					}
					list = append(list, measuredPoint{p, c, batch, strconv.FormatFloat(p.Load.Level(), 'g', -1, 64), instances, satisfies})
				}
			}
		}
	}
	return list
}

// row is a load's cells in the columns; g is the GPU of the row, where the file has one for each. What is not known is empty.
func (x measuredPoint) row(r analyze.Result, columns []string, g measure.GPUWindow) []string {
	cells := make([]string, len(columns))
	for i, column := range columns {
		cells[i] = x.cell(r, column, g)
	}
	return cells
}

func (x measuredPoint) cell(r analyze.Result, column string, g measure.GPUWindow) string {
	switch column {
	case "model_name":
		return r.Header.Model
	case "batch_size":
		return x.batch
	case "concurrency":
		return x.load
	case "request_rate":
		if x.Load.RequestRate == 0 { // a closed loop
			return ""
		}
		return x.load
	case "model_config_path":
		return x.config.Name
	case "instance_group":
		return x.instances
	case "max_batch_size":
		return strings.TrimPrefix(batchCell(x.config), unknown)
	case "satisfies_constraints":
		return x.satisfies
	}
	if name, isParameter := strings.CutPrefix(column, spec.CSVBackendParameter); isParameter {
		return x.config.Deployed.GetParameters()[name].GetStringValue()
	}
	if metric, factor := csvMetric(column); metric != "" {
		return decimal(x.Values, metric, factor)
	}
	return gpuCell(column, g)
}

// csvMetric is the metric of a column, and the factor from its base unit; "" for a column without one.
func csvMetric(column string) (measure.Metric, float64) {
	const milliseconds, megabytes = 1e3, 1e-6
	switch column {
	case "perf_throughput":
		return measure.Throughput, 1
	case "perf_latency_avg":
		return measure.LatencyAvg, milliseconds
	case "perf_latency_p90":
		return measure.LatencyP90, milliseconds
	case "perf_latency_p95":
		return measure.LatencyP95, milliseconds
	case "perf_latency_p99":
		return measure.LatencyP99, milliseconds
	case "perf_server_queue":
		return measure.QueueTime, milliseconds
	case "perf_server_compute_input":
		return measure.ComputeInput, milliseconds
	case "perf_server_compute_infer":
		return measure.ComputeInfer, milliseconds
	case "perf_server_compute_output":
		return measure.ComputeOutput, milliseconds
	case "cpu_used_ram":
		return measure.Memory, megabytes
	}
	return "", 0
}

// gpuCell is what a GPU did.
func gpuCell(column string, g measure.GPUWindow) string {
	const megabyte = 1e6
	value := math.NaN()
	switch column {
	case "gpu_uuid":
		return g.UUID
	case "gpu_used_memory":
		value = float64(g.MemoryUsed) / megabyte
	case "gpu_total_memory":
		value = float64(g.MemoryTotal) / megabyte
	case "gpu_free_memory":
		value = float64(g.MemoryTotal-g.MemoryUsed) / megabyte
	case "gpu_utilization":
		value = g.Utilization * 100
	case "gpu_power_usage":
		value = g.Power
	}
	isTotal := column == "gpu_total_memory" || column == "gpu_free_memory"
	if math.IsNaN(value) || isTotal && g.MemoryTotal == 0 {
		return ""
	}
	return threeDecimals(value)
}

// deviceOf is the device that the instances run on, in Model Analyzer's words.
func deviceOf(c analyze.Config) string {
	switch v, _ := c.Candidate.Get(search.KnobExecutionProvider); v {
	case "cuda", "tensorrt":
		return "GPU"
	}
	return "CPU"
}

// decimal prints a metric times a factor; "" when it is not known.
func decimal(values map[measure.Metric]measure.Estimate, m measure.Metric, factor float64) string {
	e, ok := values[m]
	if !ok {
		return ""
	}
	return threeDecimals(e.Value * factor)
}

func threeDecimals(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

// WriteGPUCSV writes metrics-model-gpu.csv with Model Analyzer's columns, or those of the result's layout: the rows of
// metrics-model-inference.csv, one for each GPU.
func WriteGPUCSV(w io.Writer, r analyze.Result) error {
	columns := r.CSV.Or(spec.DefaultCSV()).GPU.Fields
	lines := [][]string{csvHeader(r, columns)}
	for _, x := range measuredPoints(r) {
		for _, g := range x.GPUs {
			lines = append(lines, x.row(r, columns, g))
		}
	}
	return writeCSV(w, lines)
}

// WriteServerCSV writes metrics-server-only.csv: Model Analyzer's header, and no rows, since a server without a model is not measured.
func WriteServerCSV(w io.Writer, r analyze.Result) error {
	return writeCSV(w, [][]string{csvHeader(r, r.CSV.Or(spec.DefaultCSV()).Server.Fields)})
}

func writeCSV(w io.Writer, lines [][]string) error {
	if err := csv.NewWriter(w).WriteAll(lines); err != nil {
		return fmt.Errorf("cannot write CSV: %w", err)
	}
	return nil
}
