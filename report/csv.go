package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"tuner/analyze"
	"tuner/measure"
	"tuner/search"
)

// WriteInferenceCSV writes metrics-model-inference.csv with Model Analyzer's columns: a row for each load that a
// configuration was measured under, the best configuration first, and the loads that satisfy the constraints before those
// that do not. Figures have three decimals.
func WriteInferenceCSV(w io.Writer, r analyze.Result) error {
	lines := [][]string{{"Model", "Batch", loadColumn(r), "Model Config Path", "Instance Group", "Max Batch Size",
		"Satisfies Constraints", "Throughput (infer/sec)", "p99 Latency (ms)"}}
	for _, x := range measuredPoints(r) {
		lines = append(lines, []string{
			r.Header.Model, x.batch, x.load, x.config.Name, x.instances, strconv.Itoa(x.config.Setup.MaxBatchSize), x.satisfies,
			decimal(x.Values, measure.Throughput, 1), decimal(x.Values, measure.LatencyP99, 1e3),
		})
	}
	return writeCSV(w, lines)
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
					list = append(list, measuredPoint{p, c, strconv.Itoa(p.Load.BatchSize), strconv.FormatFloat(p.Load.Level(), 'g', -1, 64),
						fmt.Sprintf("%d:%s", c.Setup.Instances, deviceOf(c)), satisfies})
				}
			}
		}
	}
	return list
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

// WriteGPUCSV writes metrics-model-gpu.csv with Model Analyzer's columns: the rows of metrics-model-inference.csv, one for each GPU.
func WriteGPUCSV(w io.Writer, r analyze.Result) error {
	lines := [][]string{{"Model", "GPU UUID", "Batch", loadColumn(r), "Model Config Path", "Instance Group",
		"Satisfies Constraints", "GPU Memory Usage (MB)", "GPU Utilization (%)", "GPU Power Usage (W)"}}
	for _, x := range measuredPoints(r) {
		for _, g := range x.GPUs {
			lines = append(lines, []string{r.Header.Model, g.UUID, x.batch, x.load, x.config.Name, x.instances, x.satisfies,
				threeDecimals(float64(g.MemoryUsed) / 1e6), threeDecimals(g.Utilization * 100), threeDecimals(g.Power)})
		}
	}
	return writeCSV(w, lines)
}

// WriteServerCSV writes metrics-server-only.csv: Model Analyzer's header, and no rows, since a server without a model is not measured.
func WriteServerCSV(w io.Writer, _ analyze.Result) error {
	return writeCSV(w, [][]string{{"Model", "GPU UUID", "GPU Memory Usage (MB)", "GPU Utilization (%)", "GPU Power Usage (W)"}})
}

func writeCSV(w io.Writer, lines [][]string) error {
	if err := csv.NewWriter(w).WriteAll(lines); err != nil {
		return fmt.Errorf("cannot write CSV: %w", err)
	}
	return nil
}
