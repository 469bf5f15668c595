// Package csv writes the tables of measurements as CSV, with Model Analyzer's names and columns. It
// also joins the files of several models.
package csv

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tuner/analyze"
	"tuner/measure"
	"tuner/ort/provider"
	"tuner/report"
	"tuner/report/figures"
	"tuner/search"
	"tuner/spec/csvfiles"
	"tuner/spec/goals"
)

// folder holds the tables in the output folder.
const folder = "results"

// Format writes three tables: configurations, GPUs, and the server without a model. Where each load is
// looked at by itself, it also writes the table from load to configuration. Otherwise that of an earlier analysis goes: a
// program that steers by it would take it for the current one.
type Format struct{}

// Name implements report.Format.
func (Format) Name() string { return "csv" }

// Files implements report.Format.
func (Format) Files(r analyze.Result, _ report.Output) []report.File {
	names := r.CSV.Named()
	file := func(name string, write func(io.Writer, analyze.Result) error) report.File {
		return report.File{Path: filepath.Join(folder, name), Write: func(w io.Writer) error { return write(w, r) }}
	}
	files := []report.File{
		file(names.Inference.Name, WriteInference), file(names.GPU.Name, WriteGPU), file(names.Server.Name, WriteServer),
	}
	if r.Each {
		return append([]report.File{file(loadsName, WriteLoads)}, files...) // --format csv prints the first
	}
	if names.Inference.Name == loadsName || names.GPU.Name == loadsName || names.Server.Name == loadsName {
		return files // Model Analyzer's file may name them so
	}
	return append(files, report.File{Path: filepath.Join(folder, loadsName)})
}

// WriteInference writes metrics-model-inference.csv, with Model Analyzer's columns or those that
// Result.CSV names. Each load of a configuration has a row. The best configuration comes first,
// with its best load first. Loads that satisfy the constraints come before those that do not.
// Figures have three decimals.
func WriteInference(w io.Writer, r analyze.Result) error {
	fields := r.CSV.Inference.Columns
	if fields == nil {
		fields = slices.Concat([]string{"model_name", "batch_size"}, loadFields(r), []string{"model_config_path", "instance_group", "max_batch_size",
			"satisfies_constraints", "perf_throughput", "perf_latency_p99"})
	}
	lines := [][]string{headers(fields)}
	for x := range measuredPoints(r) {
		lines = append(lines, cellsOf(fields, func(field string) string { return inferenceCell(r, x, field) }))
	}
	return write(w, lines)
}

// WriteGPU writes metrics-model-gpu.csv. It has each row of metrics-model-inference.csv once for
// each GPU.
func WriteGPU(w io.Writer, r analyze.Result) error {
	fields := r.CSV.GPU.Columns
	if fields == nil {
		fields = slices.Concat([]string{"model_name", "gpu_uuid", "batch_size"}, loadFields(r), []string{"model_config_path", "instance_group",
			"satisfies_constraints", "gpu_used_memory", "gpu_utilization", "gpu_power_usage"})
	}
	lines := [][]string{headers(fields)}
	for x := range measuredPoints(r) {
		for _, g := range x.GPUs {
			lines = append(lines, cellsOf(fields, func(field string) string { return gpuCell(r, x, g, field) }))
		}
	}
	return write(w, lines)
}

// WriteServer writes metrics-server-only.csv. It has Model Analyzer's header and no rows, since a
// server without a model is not measured.
func WriteServer(w io.Writer, r analyze.Result) error {
	fields := r.CSV.Server.Columns
	if fields == nil {
		fields = []string{"model_name", "gpu_uuid", "gpu_used_memory", "gpu_utilization", "gpu_power_usage"}
	}
	return write(w, [][]string{headers(fields)})
}

// loadFields names the columns of the load. Of several models some may have a rate and others a
// concurrency.
func loadFields(r analyze.Result) []string {
	parts := figures.MixOf(r).Parts()
	isRate := func(p measure.Part) bool { return p.RequestRate > 0 }
	hasRates := figures.IsRate(r) || slices.ContainsFunc(parts, isRate)
	hasOthers := slices.ContainsFunc(parts, func(p measure.Part) bool { return !isRate(p) })
	switch {
	case hasRates && hasOthers:
		return []string{"concurrency", "request_rate"}
	case hasRates:
		return []string{"request_rate"}
	}
	return []string{"concurrency"}
}

// column is a column of a table: Model Analyzer's name in YAML, its title, and its meaning.
type column struct{ name, head, about string }

// columns lists all columns except those of parameters.
func columns() []column {
	return []column{
		{"model_name", "Model", "The name under which the model is served."},
		{"batch_size", "Batch", "Inferences in one request."},
		{"concurrency", "Concurrency", "Requests in flight."},
		{"request_rate", "Request Rate", "Requests per second."},
		{"model_config_path", "Model Config Path", "The configuration's name."},
		{"instance_group", "Instance Group", "`N:CPU` or `N:GPU`."},
		{"max_batch_size", "Max Batch Size", "The largest batch of the configuration."},
		{"satisfies_constraints", "Satisfies Constraints", "`Yes` or `No`, at this load."},
		{"gpu_uuid", "GPU UUID", "The GPU of the row."},
		{"perf_throughput", "Throughput (infer/sec)", "Inferences per second."},
		{"perf_latency_avg", "Avg Latency (ms)", "Mean latency of a request."},
		{"perf_latency_p90", "p90 Latency (ms)", "90th percentile of the latency."},
		{"perf_latency_p95", "p95 Latency (ms)", "95th percentile of the latency."},
		{"perf_latency_p99", "p99 Latency (ms)", "99th percentile of the latency."},
		{"perf_server_queue", "Server Queue time (ms)", "Mean time in the queue."},
		{"perf_server_compute_input", "Server Compute Input time (ms)", "Mean time in which inputs are gathered."},
		{"perf_server_compute_infer", "Server Compute Infer time (ms)", "Mean time in which the model computes."},
		{"perf_server_compute_output", "Server Compute Output time (ms)", "Mean time in which outputs are handed out."},
		{"cpu_used_ram", "RAM Usage (MB)", "Peak resident memory of the server process."},
		{"gpu_used_memory", "GPU Memory Usage (MB)", "Most memory in use on the GPU, by all processes."},
		{"gpu_free_memory", "GPU Memory Available (MB)", "The GPU's memory less the most in use; empty where that is not known."},
		{"gpu_total_memory", "GPU Memory Available (MB)", "The GPU's memory."},
		{"perf_client_send_recv", "Client Send/Recv (ms)", "Empty: not measured."},
		{"perf_client_response_wait", "Response Wait Time (ms)", "Empty: not measured."},
		{"cpu_available_ram", "RAM Available (MB)", "Empty: not measured."},
		{"gpu_utilization", "GPU Utilization (%)", "Share of the time in which the GPU computes, on average."},
		{"gpu_power_usage", "GPU Power Usage (W)", "The GPU's power, on average."},
	}
}

// header returns a column's title, as Model Analyzer writes it.
func header(field string) string {
	for _, c := range columns() {
		if c.name == field {
			return c.head
		}
	}
	return Text(field) // title of a backend parameter
}

func headers(fields []string) []string { return cellsOf(fields, header) }

func cellsOf(fields []string, cell func(string) string) []string {
	cells := make([]string, len(fields))
	for i, f := range fields {
		cells[i] = cell(f)
	}
	return cells
}

// measuredPoint is a load of a configuration.
type measuredPoint struct {
	analyze.Point
	config    analyze.Config
	satisfies string
}

// bestFirst returns the points of a configuration: first the one that ranks it, then the others by
// ascending load.
func bestFirst(c analyze.Config) []analyze.Point {
	points := slices.Clone(c.Points)
	if c.Best == nil {
		return points
	}
	slices.SortStableFunc(points, func(a, b analyze.Point) int {
		rank := func(p analyze.Point) int {
			if p.Load == c.Best.Load {
				return 0
			}
			return 1
		}
		return cmp.Compare(rank(a), rank(b))
	})
	return points
}

// measuredPoints yields all loads in the order of the rows.
func measuredPoints(r analyze.Result) iter.Seq[measuredPoint] {
	return func(yield func(measuredPoint) bool) {
		for _, c := range r.Configs {
			points := bestFirst(c)
			for _, satisfies := range []string{"Yes", "No"} {
				for _, p := range points {
					if p.Satisfies() == (satisfies == "Yes") && !yield(measuredPoint{p, c, satisfies}) {
						return
					}
				}
			}
		}
	}
}

// inferenceCell returns a cell of the configurations' file. It is "" if the field does not apply or
// is unknown.
func inferenceCell(r analyze.Result, x measuredPoint, field string) string {
	if len(r.Models) > 0 {
		return severalCell(r, x, field)
	}
	if cell, isOfStages := stageCell(r, x, field); isOfStages {
		return cell
	}
	switch field {
	case "model_name":
		return Text(r.Header.Model)
	case "batch_size":
		return known(strconv.Itoa(x.Load.BatchSize))
	case "concurrency":
		return known(strconv.Itoa(x.Load.Concurrency))
	case "request_rate":
		return known(strconv.FormatFloat(x.Load.RequestRate, 'g', -1, 64))
	case "model_config_path":
		return Text(x.config.Name)
	case "instance_group":
		if x.config.Setup.Instances == 0 {
			return ""
		}
		return fmt.Sprintf("%d:%s", x.config.Setup.Instances, deviceOf(x.config))
	case "max_batch_size":
		return strings.TrimPrefix(figures.BatchCell(x.config), figures.Unknown)
	case "satisfies_constraints":
		return x.satisfies
	}
	if parameter, ok := strings.CutPrefix(field, csvfiles.BackendParameter); ok {
		return Text(x.config.Deployed.GetParameters()[parameter].GetStringValue())
	}
	metric := goals.TagMetric(field)
	if metric == "" { // a field without a metric
		return ""
	}
	return decimal(x.Values, metric, figures.QuantityOf(metric).Factor)
}

// gpuCell returns a cell of the GPUs' file.
func gpuCell(r analyze.Result, x measuredPoint, g measure.GPUWindow, field string) string {
	megabytes := func(bytes int64, isKnown bool) string {
		if !isKnown {
			return ""
		}
		return threeDecimals(float64(bytes) / 1e6)
	}
	hasTotal := g.MemoryTotal > 0            // figures of another program may lack it
	hasUsed := g.MemoryUsed > 0 || !hasTotal // unknown where engines that took turns were on the GPU together
	switch field {
	case "gpu_uuid":
		return Text(g.UUID)
	case "gpu_used_memory":
		return megabytes(g.MemoryUsed, hasUsed)
	case "gpu_free_memory":
		return megabytes(g.MemoryTotal-g.MemoryUsed, hasTotal && hasUsed)
	case "gpu_total_memory":
		return megabytes(g.MemoryTotal, hasTotal)
	case "gpu_utilization":
		return threeDecimals(g.Utilization * 100)
	case "gpu_power_usage":
		return threeDecimals(g.Power)
	}
	return inferenceCell(r, x, field)
}

// known returns a number as text, and "" for 0.
func known(number string) string {
	if number == "0" {
		return ""
	}
	return number
}

// Text makes a cell with text from a user's file. A spreadsheet computes a cell that begins with one
// of these characters. A leading apostrophe makes it text.
func Text(cell string) string {
	if cell != "" && strings.IndexByte("=+-@\t\r\n", cell[0]) >= 0 {
		return "'" + cell
	}
	return cell
}

// deviceOf returns the device of the instances, as Model Analyzer names it.
func deviceOf(c analyze.Config) string {
	chosen, _ := c.Candidate.Get(search.KnobExecutionProvider)
	if of := cmp.Or(string(chosen), c.Setup.Provider); of == analyze.RecordedGPU || provider.OnGPU(of) {
		return "GPU"
	}
	return "CPU"
}

// decimal prints a metric times a factor; "" if it is unknown.
func decimal(values map[measure.Metric]measure.Estimate, m measure.Metric, factor float64) string {
	e, ok := values[m]
	if !ok {
		return ""
	}
	return threeDecimals(e.Value * factor)
}

func threeDecimals(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

func write(w io.Writer, lines [][]string) error {
	if err := csv.NewWriter(w).WriteAll(lines); err != nil {
		return fmt.Errorf("cannot write CSV: %w", err)
	}
	return nil
}
