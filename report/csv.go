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
	load := "Concurrency"
	if isRate(r) {
		load = "Request Rate"
	}
	lines := [][]string{{"Model", "Batch", load, "Model Config Path", "Instance Group", "Max Batch Size",
		"Satisfies Constraints", "Throughput (infer/sec)", "p99 Latency (ms)"}}
	for _, c := range r.Configs {
		for _, satisfies := range []bool{true, false} {
			for _, p := range c.Points {
				if (len(p.Misses) == 0) == satisfies {
					lines = append(lines, inferenceRow(r, c, p))
				}
			}
		}
	}
	return writeCSV(w, lines)
}

func inferenceRow(r analyze.Result, c analyze.Config, p analyze.Point) []string {
	satisfies := "No"
	if len(p.Misses) == 0 {
		satisfies = "Yes"
	}
	return []string{
		r.Header.Model, strconv.Itoa(p.Load.BatchSize), strconv.FormatFloat(p.Load.Level(), 'g', -1, 64), c.Name,
		fmt.Sprintf("%d:%s", c.Setup.Instances, deviceOf(c)), strconv.Itoa(c.Setup.MaxBatchSize), satisfies,
		decimal(p.Values, measure.Throughput, 1), decimal(p.Values, measure.LatencyP99, 1e3),
	}
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
	return strconv.FormatFloat(e.Value*factor, 'f', 3, 64)
}

// WriteGPUCSV writes metrics-model-gpu.csv: Model Analyzer's header, and no rows, since no figures of a GPU are measured.
func WriteGPUCSV(w io.Writer, r analyze.Result) error {
	load := "Concurrency"
	if isRate(r) {
		load = "Request Rate"
	}
	return writeCSV(w, [][]string{{"Model", "GPU UUID", "Batch", load, "Model Config Path", "Instance Group",
		"Satisfies Constraints", "GPU Memory Usage (MB)", "GPU Utilization (%)", "GPU Power Usage (W)"}})
}

// WriteServerCSV writes metrics-server-only.csv: Model Analyzer's header, and no rows, since all its figures are a GPU's.
func WriteServerCSV(w io.Writer, _ analyze.Result) error {
	return writeCSV(w, [][]string{{"Model", "GPU UUID", "GPU Memory Usage (MB)", "GPU Utilization (%)", "GPU Power Usage (W)"}})
}

func writeCSV(w io.Writer, lines [][]string) error {
	if err := csv.NewWriter(w).WriteAll(lines); err != nil {
		return fmt.Errorf("cannot write CSV: %w", err)
	}
	return nil
}
