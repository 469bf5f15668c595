package csv

import (
	"io"
	"strconv"
	"strings"

	"tuner/analyze"
	"tuner/measure"
)

// loadsName is the file of the table from load to configuration.
const loadsName = "loads.csv"

// WriteLoads writes the table from load to configuration: a row for each measured load, ascending, with
// the best configuration there and its figures, each with the ends of its 95 % interval. Cells are empty
// where nothing satisfies the constraints, and where a figure is unknown. Figures have three decimals.
func WriteLoads(w io.Writer, r analyze.Result) error {
	lines := [][]string{{
		"model_name", "batch_size", levelField(r), "measured", "model_config_path", "instances", "max_batch_size", "queue_delay_us",
		"throughput", "throughput_low", "throughput_high", "latency_avg_ms", "latency_avg_low_ms", "latency_avg_high_ms",
		"latency_p99_ms", "latency_p99_low_ms", "latency_p99_high_ms", "gain", "gain_low", "gain_high", "tied_with",
	}}
	for _, l := range r.Loads {
		line := []string{Text(r.Header.Model), strconv.Itoa(max(1, l.Load.BatchSize)), strconv.FormatFloat(l.Load.Level(), 'f', -1, 64), strconv.Itoa(l.Measured)}
		lines = append(lines, append(line, bestCells(l.Best)...))
	}
	return write(w, lines)
}

// levelField names the column of the load: its kind, or the scale of several models.
func levelField(r analyze.Result) string {
	if len(r.Models) > 0 {
		return "scale"
	}
	return loadFields(r)[0]
}

// bestCells returns the cells of the best configuration at a load. Without one they are empty.
func bestCells(c *analyze.Config) []string {
	const cells = 17
	if c == nil || c.Best == nil {
		return make([]string, cells)
	}
	line := append([]string{Text(c.Name)}, setupCells(c.Setup)...)
	estimate := func(e measure.Estimate, ok bool, factor float64) {
		if !ok {
			line = append(line, "", "", "")
			return
		}
		line = append(line, threeDecimals(factor*e.Value), threeDecimals(factor*e.Lo), threeDecimals(factor*e.Hi))
	}
	const milliseconds = 1000
	for _, x := range []struct {
		metric measure.Metric
		factor float64
	}{{measure.Throughput, 1}, {measure.LatencyAvg, milliseconds}, {measure.LatencyP99, milliseconds}} {
		e, ok := c.Best.Values[x.metric]
		estimate(e, ok, x.factor)
	}
	if c.Gain != nil {
		estimate(*c.Gain, true, 1)
	} else {
		estimate(measure.Estimate{}, false, 1)
	}
	return append(line, Text(strings.Join(c.TiedWith, " ")))
}

// setupCells returns the instances, the largest batch and the longest delay of a setup. What is unknown is empty.
func setupCells(s analyze.Setup) []string {
	cells := make([]string, 3)
	if s.Instances == 0 {
		return cells
	}
	cells[0] = strconv.Itoa(s.Instances)
	if s.MaxBatchSize >= 0 {
		cells[1] = strconv.Itoa(s.MaxBatchSize)
	}
	if s.QueueDelay >= 0 {
		cells[2] = strconv.FormatInt(s.QueueDelay.Microseconds(), 10)
	}
	return cells
}
