package output

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tuner/measure"
	"tuner/perf"
)

// CSV writes perf_analyzer's columns, a row per level in the order of increasing throughput. A run
// with a limit for goodput has one more column. Levels without windows are left out. If no request
// was answered, the latency cells are empty. Times are whole microseconds.
func CSV(w io.Writer, r perf.Report, verbose bool) error {
	lines := [][]string{csvHeader(r.Settings, verbose)}
	for _, l := range byThroughput(r.Levels) {
		lines = append(lines, csvRow(l, r.Settings, verbose))
	}
	return writeCSV(w, lines)
}

func writeCSV(w io.Writer, lines [][]string) error {
	if err := csv.NewWriter(w).WriteAll(lines); err != nil {
		return fmt.Errorf("cannot write CSV: %w", err)
	}
	return nil
}

// ComposingFile returns the path of the file for a model that an ensemble calls. It lies beside the
// ensemble's file.
func ComposingFile(path string, c perf.Composing) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf("%s_v%s.%s", c.Model, c.Version, filepath.Base(path)))
}

// ComposingCSV writes perf_analyzer's columns for a model that an ensemble calls: its share of the
// ensemble's throughput, and its parts.
func ComposingCSV(w io.Writer, r perf.Report, of perf.Composing) error {
	s := r.Settings
	header := csvHeader(perf.Settings{Mode: s.Mode, Statistics: true, Cache: s.Cache}, false)
	lines := [][]string{header[:slices.Index(header, clientRecv)+1]}
	for _, l := range byThroughput(r.Levels) {
		i := slices.IndexFunc(l.Composing, func(c perf.Composing) bool { return c.Model == of.Model && c.Version == of.Version })
		if i < 0 {
			continue
		}
		stats, rate := l.Composing[i].Server, 0.0
		if all := totalOf(l.Measurement).server.Requests; all > 0 {
			rate = estimate(l.Measurement, measure.Throughput).Value * float64(stats.Requests) / float64(all)
		}
		row := append([]string{six(l.Load.Level()), six(rate), "0"}, csvServer(stats, partsOf(stats).success, s.Cache)...)
		lines = append(lines, append(row, "0"))
	}
	return writeCSV(w, lines)
}

// byThroughput returns the levels with windows, in the order of increasing throughput.
func byThroughput(levels []perf.Level) []perf.Level {
	list := slices.DeleteFunc(slices.Clone(levels), func(l perf.Level) bool { return len(l.Measurement.Windows) == 0 })
	slices.SortStableFunc(list, func(a, b perf.Level) int {
		return cmp.Compare(estimate(a.Measurement, measure.Throughput).Value, estimate(b.Measurement, measure.Throughput).Value)
	})
	return list
}

// clientRecv is the column after the server's.
const clientRecv = "Client Recv"

func csvHeader(s perf.Settings, verbose bool) []string {
	load := "Request Rate"
	if s.Mode == perf.ModeConcurrency {
		load = "Concurrency"
	}
	titles := []string{load, "Inferences/Second"}
	if s.Decoupled {
		titles = append(titles, "Response Throughput")
	}
	titles = append(titles, "Client Send")
	if s.Statistics {
		titles = append(titles, "Network+Server Send/Recv", "Server Queue", "Server Compute Input", "Server Compute Infer", "Server Compute Output")
		if s.Cache {
			titles = append(titles, "Server Cache Hit", "Server Cache Miss")
		}
	}
	titles = append(titles, clientRecv)
	for _, p := range percentiles(s) {
		titles = append(titles, fmt.Sprintf("p%d latency", p))
	}
	if s.Goodput > 0 {
		titles = append(titles, "Goodput")
	}
	if verbose {
		if s.Percentile == 0 {
			titles = append(titles, "Avg latency")
		}
		titles = append(titles, "request/response", "response wait")
		if s.Metrics {
			titles = append(titles, "Avg GPU Utilization", "Avg GPU Power Usage", "Max GPU Memory Usage", "Total GPU Memory")
		}
	}
	return titles
}

// csvRow returns a level's cells. The column for sending has the time before the sending in an open
// loop. The column for receiving is 0, since receiving cannot be separated from waiting.
func csvRow(l perf.Level, s perf.Settings, verbose bool) []string {
	m, t := l.Measurement, totalOf(l.Measurement)
	known := func(v int64) string { // formats latencies
		if t.latency.Count() == 0 {
			return ""
		}
		return strconv.FormatInt(v, 10)
	}
	mean := estimate(m, measure.LatencyAvg).Value
	waited, served := t.split(mean)
	row := []string{six(l.Load.Level()), six(estimate(m, measure.Throughput).Value)}
	if s.Decoupled {
		row = append(row, six(t.rate(t.responses)))
	}
	row = append(row, known(waited))
	if s.Statistics {
		row = append(row, csvServer(t.server, served, s.Cache)...)
	}
	row = append(row, "0")
	for _, p := range percentiles(s) {
		e, _ := m.Percentile(float64(p) / 100)
		row = append(row, known(micros(e.Value)))
	}
	if e, ok := goodput(m, l.Load, s); ok {
		row = append(row, six(e.Value))
	}
	if verbose {
		if s.Percentile == 0 {
			row = append(row, known(micros(mean)))
		}
		row = append(row, known(waited), known(served))
		if s.Metrics {
			row = append(row, csvGPUs(t.gpus)...)
		}
	}
	return row
}

// csvServer returns the cells for the server's parts. The rest of the time after the sending
// belongs to the network.
func csvServer(stats measure.ServerStats, served int64, cache bool) []string {
	p := partsOf(stats)
	accounted := p.queue + p.compute
	cells := []int64{p.queue, p.input, p.infer, p.output}
	if cache {
		accounted += p.hit + p.miss
		cells = append(cells, p.hit, p.miss)
	}
	row := []string{strconv.FormatInt(max(0, served-accounted), 10)}
	for _, c := range cells {
		row = append(row, strconv.FormatInt(c, 10))
	}
	return row
}

// csvGPUs returns four cells, each with a value per GPU.
func csvGPUs(gpus []measure.GPUWindow) []string {
	var utilization, power, used, all strings.Builder
	for _, g := range gpus {
		fmt.Fprintf(&utilization, "%s:%s;", g.UUID, six(g.Utilization))
		fmt.Fprintf(&power, "%s:%s;", g.UUID, six(g.Power))
		fmt.Fprintf(&used, "%s:%d;", g.UUID, g.MemoryUsed)
		fmt.Fprintf(&all, "%s:%d;", g.UUID, g.MemoryTotal)
	}
	return []string{utilization.String(), power.String(), used.String(), all.String()}
}
