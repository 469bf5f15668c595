package imported

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/measure"
)

// Columns of perf_analyzer's CSV. Every file has that of the throughput, and one of a load.
const (
	columnConcurrency = "Concurrency"
	columnRate        = "Request Rate"
	columnThroughput  = "Inferences/Second"
)

// columnOf returns the metric of a column in perf_analyzer's CSV, and the factor to its base unit.
// It returns "" for a column without a metric.
func columnOf(name string) (measure.Metric, float64) {
	switch name {
	case columnThroughput:
		return measure.Throughput, 1
	case "Avg latency":
		return measure.LatencyAvg, microseconds
	case "Server Queue":
		return measure.QueueTime, microseconds
	case "Server Compute Input":
		return measure.ComputeInput, microseconds
	case "Server Compute Infer":
		return measure.ComputeInfer, microseconds
	case "Server Compute Output":
		return measure.ComputeOutput, microseconds
	}
	if p, found := strings.CutSuffix(name, " latency"); found {
		if m := measure.Metric("latency_" + p); isPercentile(m) {
			return m, microseconds
		}
	}
	return "", 0
}

func isPercentile(m measure.Metric) bool {
	_, ok := m.Quantile()
	return ok
}

// gpuTag returns Model Analyzer's tag for a per-GPU column in perf_analyzer's CSV, and the factor
// to the tag's unit.
func gpuTag(name string) (string, float64) {
	switch name {
	case "Avg GPU Utilization":
		return "gpu_utilization", 1 / percent
	case "Avg GPU Power Usage":
		return "gpu_power_usage", 1
	case "Max GPU Memory Usage":
		return "gpu_used_memory", 1 / megabytes
	case "Total GPU Memory":
		return "gpu_total_memory", 1 / megabytes
	}
	return "", 0
}

// parseCSV reads the file that perf_analyzer -f writes. It has a row for each load.
func parseCSV(path string, text []byte) (analyze.Recording, error) {
	reader := csv.NewReader(bytes.NewReader(text))
	reader.FieldsPerRecord = -1
	lines, err := reader.ReadAll()
	if err != nil {
		return analyze.Recording{}, fmt.Errorf("cannot read the CSV file of perf_analyzer: %w", err)
	}
	var points []analyze.RecordedPoint
	for i, line := range lines[1:] {
		p, err := csvPoint(lines[0], line)
		if err != nil {
			return analyze.Recording{}, fmt.Errorf("row %d: %w", i+2, err)
		}
		points = append(points, p)
	}
	if len(points) == 0 {
		return analyze.Recording{}, errors.New("the file has no rows: perf_analyzer found no stable load")
	}
	return single(path, points), nil
}

func csvPoint(header, line []string) (analyze.RecordedPoint, error) {
	p := analyze.RecordedPoint{Values: map[measure.Metric]float64{}}
	gpus := map[string][]record{}
	var uuids []string
	for i, name := range header {
		if i >= len(line) {
			return p, fmt.Errorf("it has %d cells, and the header has %d", len(line), len(header))
		}
		if tag, factor := gpuTag(name); tag != "" {
			for uuid, x := range gpuCell(line[i]) {
				if !slices.Contains(uuids, uuid) {
					uuids = append(uuids, uuid)
				}
				gpus[uuid] = append(gpus[uuid], record{tag, x * factor})
			}
			continue
		}
		x, ok := number(line[i])
		metric, factor := columnOf(name)
		switch {
		case line[i] == "" && !slices.Contains([]string{columnConcurrency, columnRate, columnThroughput}, name): // a time where no request was answered
		case !ok:
			return p, fmt.Errorf("%s is %q, not a number", name, line[i])
		case name == columnConcurrency:
			p.Load = closedLoop(x, 0)
		case name == columnRate:
			p.Load = openLoop(x, 0)
		case metric != "":
			p.Values[metric] = x * factor
		}
	}
	if p.Load.Concurrency < 1 && !(p.Load.RequestRate > 0) {
		return p, errors.New("it has neither a Concurrency nor a Request Rate")
	}
	slices.Sort(uuids)
	all := gpuPoint{RecordedPoint: &p}
	for _, uuid := range uuids {
		all.addGPU(uuid, gpus[uuid])
	}
	return p, nil
}

// gpuCell reads "UUID:value;UUID:value;".
func gpuCell(text string) map[string]float64 {
	figures := map[string]float64{}
	for part := range strings.SplitSeq(text, ";") {
		at := strings.LastIndex(part, ":")
		if x, ok := number(part[at+1:]); ok && at > 0 {
			figures[strings.TrimSpace(part[:at])] = x
		}
	}
	return figures
}

// The lines that are read in perf_analyzer's output.
var (
	batchLine      = regexp.MustCompile(`^\s*Batch size: (\d+)\s*$`)
	loadLine       = regexp.MustCompile(`^\s*Request (concurrency|Rate): ([\d.e+]+)( inference requests per seconds)?\s*$`)
	throughputLine = regexp.MustCompile(`^\s*Throughput: ([\d.e+]+) infer/sec`)
	latencyLine    = regexp.MustCompile(`^\s*(Avg|p[\d.]+) latency: ([\d.e+]+) usec`)
	serverLine     = regexp.MustCompile(`^\s*Avg request latency: .*\(`)
	serverPart     = regexp.MustCompile(`(queue|compute input|compute infer|compute output) ([\d.e+]+) usec`)
	headingLine    = regexp.MustCompile(`^Inferences/Second vs\. Client (Average|p[\d.]+) Batch Latency`)
	summaryLine    = regexp.MustCompile(`^\s*(Concurrency|Request Rate): ([\d.e+]+), (?:throughput: )?([\d.e+]+) infer/sec, latency ([\d.e+]+) usec`)
)

// outputReader reads perf_analyzer's output line by line.
type outputReader struct {
	batch   float64
	summary measure.Metric // the latency metric in the summary lines
	points  []analyze.RecordedPoint
}

// parseOutput reads what perf_analyzer prints: a section for each load, and a summary line for each
// load at the end. Either may be missing. Many documents show results as summary lines only.
func parseOutput(path string, text []byte) (analyze.Recording, error) {
	r := outputReader{summary: measure.LatencyAvg}
	for line := range strings.Lines(string(text)) {
		r.line(strings.TrimRight(line, "\r\n"))
	}
	// unstable loads have no figures
	r.points = slices.DeleteFunc(r.points, func(p analyze.RecordedPoint) bool { return len(p.Values) == 0 })
	if len(r.points) == 0 {
		return analyze.Recording{}, errors.New("this is neither output of perf_analyzer, nor its CSV file, nor a checkpoint of Model Analyzer: no load has a throughput")
	}
	return single(path, r.points), nil
}

func (r *outputReader) line(line string) {
	if m := batchLine.FindStringSubmatch(line); m != nil {
		r.batch, _ = number(m[1])
	}
	if m := loadLine.FindStringSubmatch(line); m != nil {
		if x, ok := number(m[2]); ok {
			r.at(m[1] == "Rate", x)
		}
	}
	if m := headingLine.FindStringSubmatch(line); m != nil {
		r.summary = latencyOf(m[1])
	}
	if m := summaryLine.FindStringSubmatch(line); m != nil {
		level, _ := number(m[2])
		if p := r.at(m[1] == "Request Rate", level); p != nil {
			p.keep(measure.Throughput, m[3], 1)
			p.keep(r.summary, m[4], microseconds)
		}
		return
	}
	if len(r.points) == 0 {
		return
	}
	p := (*point)(&r.points[len(r.points)-1])
	if m := throughputLine.FindStringSubmatch(line); m != nil {
		p.keep(measure.Throughput, m[1], 1)
	}
	if m := latencyLine.FindStringSubmatch(line); m != nil {
		p.keep(latencyOf(m[1]), m[2], microseconds)
	}
	if serverLine.MatchString(line) {
		metrics := map[string]measure.Metric{"queue": measure.QueueTime, "compute input": measure.ComputeInput, "compute infer": measure.ComputeInfer,
			"compute output": measure.ComputeOutput}
		for _, m := range serverPart.FindAllStringSubmatch(line, -1) {
			p.keep(metrics[m[1]], m[2], microseconds)
		}
	}
}

// at returns the point of a load, and makes it if it is new. It returns nil for an invalid load.
func (r *outputReader) at(isRate bool, level float64) *point {
	load := closedLoop(level, r.batch)
	if isRate {
		load = openLoop(level, r.batch)
	}
	if !(load.Level() > 0) || level >= 1<<31 {
		return nil
	}
	i := slices.IndexFunc(r.points, func(p analyze.RecordedPoint) bool { return p.Load == load })
	if i < 0 {
		i = len(r.points)
		r.points = append(r.points, analyze.RecordedPoint{Load: load, Values: map[measure.Metric]float64{}})
	}
	return (*point)(&r.points[i])
}

// point keeps the first value of each figure, since the sections are finer than the summary lines.
type point analyze.RecordedPoint

func (p *point) keep(m measure.Metric, text string, factor float64) {
	x, ok := number(text)
	if _, has := p.Values[m]; ok && !has && m != "" {
		p.Values[m] = x * factor
	}
}

// latencyOf returns the metric of perf_analyzer's words for a latency: Avg, Average, p95. It
// returns "" for other words.
func latencyOf(word string) measure.Metric {
	if strings.HasPrefix(word, "Av") {
		return measure.LatencyAvg
	}
	if m := measure.Metric("latency_" + word); isPercentile(m) {
		return m
	}
	return ""
}
