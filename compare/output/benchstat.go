package output

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"tuner/compare"
	"tuner/measure"
)

// WriteBenchstat writes all runs in the format of Go's benchmarks. The line "run:" before the
// benchmarks of a run names it, so that `benchstat -col run` puts the runs beside each other.
//
// Each window, or pair of a gate, is a line, and of several models one for each of them. A point
// without single measurements has one line. Names have the settings, not the name of a
// configuration, since that differs between campaigns.
func WriteBenchstat(w io.Writer, c compare.Comparison) error {
	var b strings.Builder
	b.WriteString("Unit infer/s better=higher\nUnit p50-ns better=lower\nUnit p99-ns better=lower\n")
	for _, r := range c.Runs {
		fmt.Fprintf(&b, "run: %s\n", word(r.Name))
		for _, config := range r.Configurations {
			for _, p := range config.Points {
				writePoint(&b, "BenchmarkCompare/config="+word(config.Key)+loadKey(p), p)
			}
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cannot write benchmarks: %w", err)
	}
	return nil
}

func writePoint(b *strings.Builder, name string, p compare.Point) {
	samples := p.Samples()
	if len(samples) == 0 {
		one := compare.Sample{Values: map[measure.Metric]float64{}}
		for metric, f := range p.Values {
			one.Values[metric] = f.Value
		}
		samples = []compare.Sample{one}
	}
	for _, s := range samples {
		for _, model := range modelsOf(s) {
			writeLine(b, name, model, s)
		}
	}
}

// modelsOf lists the models of which a sample has figures. "" is one model, or the server of several.
func modelsOf(s compare.Sample) (models []string) {
	for metric := range s.Values {
		if model, _ := metric.Split(); !slices.Contains(models, model) {
			models = append(models, model)
		}
	}
	slices.Sort(models)
	return models
}

// writeLine writes a model's figures in a sample. How many of the sample's requests are those of one of several
// models is unknown.
func writeLine(b *strings.Builder, name, model string, s compare.Sample) {
	requests := s.Requests
	if model != "" {
		name, requests = name+"/model="+word(model), 0
	}
	var figures strings.Builder
	for _, column := range []struct {
		metric measure.Metric
		unit   string
		scale  float64
	}{
		{measure.LatencyAvg, "ns/op", 1e9}, {measure.Throughput, "infer/s", 1}, {measure.LatencyP50, "p50-ns", 1e9}, {measure.LatencyP99, "p99-ns", 1e9},
	} {
		if v, ok := s.Values[column.metric.Of(model)]; ok {
			fmt.Fprintf(&figures, " %s %s", strconv.FormatFloat(v*column.scale, 'g', 6, 64), column.unit)
		}
	}
	if figures.Len() > 0 {
		fmt.Fprintf(b, "%s %d%s\n", name, max(1, requests), &figures)
	}
}

func loadKey(p compare.Point) string {
	key := "/concurrency=" + strconv.Itoa(p.Load.Concurrency)
	switch {
	case p.Load.Scale > 0:
		key = "/scale=" + strconv.FormatFloat(p.Load.Scale, 'g', 6, 64)
	case p.Load.Concurrency == 0:
		key = "/rate=" + strconv.FormatFloat(p.Load.RequestRate, 'g', 6, 64)
	}
	if p.Load.BatchSize > 1 {
		key += "/batch=" + strconv.Itoa(p.Load.BatchSize)
	}
	if p.Server != "" {
		key += "/server=" + word(p.Server)
	}
	return key
}

// word makes text a part of a benchmark's name: one word without a slash.
func word(text string) string {
	return strings.ReplaceAll(strings.Join(strings.FieldsFunc(text, isBreak), "_"), "/", "_")
}

func isBreak(c rune) bool {
	return c <= ' ' || c == 0x7f || c == 0x85 || c == 0xa0 || c == 0x2028 || c == 0x2029
}
