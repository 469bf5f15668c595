package output

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/internal/golden"
	"tuner/measure"
	"tuner/measure/arrivals"
	"tuner/perf"
)

const ms = time.Millisecond

// window returns a window of 1 s in ten sub-windows. Each has the given latencies, except that
// every second one lacks the first, so that rates vary.
func window(start, delay time.Duration, latencies ...time.Duration) measure.Window {
	w := measure.Window{Start: start, Duration: time.Second, SendDelay: measure.NewHistogram([]time.Duration{delay})}
	for i := range 10 {
		part := latencies[i%2:]
		sub := measure.SubWindow{Requests: len(part), Duration: 100 * ms, Latency: measure.NewHistogram(part)}
		for _, l := range part {
			sub.Sum += l
		}
		w.Requests += len(part)
		w.Sub = append(w.Sub, sub)
	}
	w.Inferences = w.Requests
	w.InFlight = 4
	w.ClientCPU = 50 * ms
	w.Foreign, w.Steal, w.Throttled = 0.02, 0.001, 0.003
	return w
}

// ladder returns n latencies from first in equal steps.
func ladder(first, step time.Duration, n int) []time.Duration {
	list := make([]time.Duration, n)
	for i := range list {
		list[i] = first + time.Duration(i)*step
	}
	return list
}

// closedSettings returns the settings of a concurrency range with default values.
func closedSettings() perf.Settings {
	return perf.Settings{
		Program: "tuner 1.2.3", Machine: "4 cores", Model: "resnet", URL: "localhost:8000", Protocol: "http",
		Mode: perf.ModeConcurrency, Levels: perf.Levels{Start: 1, End: 4, Step: 1}, Search: perf.SearchLinear, Batch: 1,
		Stop:       perf.Stop{Rule: perf.RulePrecision, Precision: 0.02, Budget: 30 * time.Second, Window: time.Second},
		Statistics: true,
	}
}

// closedLevel returns a measurement at concurrency 4: two windows, 95 requests of 31.0 to 40.8 ms
// per second.
func closedLevel() perf.Level {
	latencies := ladder(31*ms, 1100*time.Microsecond, 10)
	first, second := window(2*time.Second, 20*time.Microsecond, latencies...), window(3*time.Second, 30*time.Microsecond, latencies...)
	for _, w := range []*measure.Window{&first, &second} {
		w.EngineCPU = 1500 * ms
		w.Server = measure.ServerStats{
			Requests: 95, Inferences: 95, Executions: 40, Success: 95 * 34 * ms, Queue: 95 * 4 * ms, ComputeInput: 95 * ms / 10,
			ComputeInfer: 95 * 29 * ms, ComputeOutput: 95 * ms / 20,
			Batches: []measure.BatchStat{{Size: 1, Executions: 10, ComputeInfer: 200 * ms}, {Size: 3, Executions: 30, ComputeInfer: 900 * ms}},
		}
	}
	second.Errors, second.TimedOut, second.FirstError = 5, 1, "server answered 500:\nout of memory"
	second.Flags = []measure.Flag{measure.FlagErrors}
	return perf.Level{
		Load: measure.Load{Concurrency: 4, BatchSize: 1}, Begin: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), WarmUp: 2 * time.Second,
		Measurement: measure.Measurement{Windows: []measure.Window{first, second}, Memory: 311e6},
		Verdict:     perf.VerdictBudget, Warnings: []string{"the asked precision was not reached"}, Unfinished: 4, Waited: 20 * ms,
	}
}

// openSettings returns settings of request rates with a limit on the 95th percentile, and with
// metrics and statistics of a model with a cache.
func openSettings() perf.Settings {
	s := closedSettings()
	s.Mode, s.Arrivals, s.Protocol, s.URL = perf.ModeRate, arrivals.Pattern{}, "grpc", "localhost:8001"
	s.Levels, s.Search = perf.Levels{Start: 100, Step: 50, Open: true}, perf.SearchLinear
	s.LatencyLimit, s.Percentile, s.Batch = 50*ms, 97, 2
	s.Stop = perf.Stop{Rule: perf.RuleStability, Stability: 0.1, Trials: 10, Requests: 50}
	s.Async, s.Cache, s.Metrics = true, true, true
	return s
}

// openLevel returns a measurement at 100 requests/s: one window of 95 requests, which waited for 2
// ms before they were sent.
func openLevel() perf.Level {
	latencies := ladder(31*ms, 1100*time.Microsecond, 10)
	w := window(time.Second, 2*ms, latencies...)
	w.Inferences = 2 * w.Requests
	w.Scheduled, w.Late, w.Dropped = 100, 95, 5
	for i := range w.Sub {
		var served []time.Duration
		for _, l := range latencies[i%2:] {
			served = append(served, l-2*ms)
		}
		w.Sub[i].Service = measure.NewHistogram(served)
	}
	w.Server = measure.ServerStats{
		Requests: 95, Inferences: 150, Executions: 75, Success: 95 * 20 * ms, Queue: 95 * 2 * ms, ComputeInput: 75 * ms / 10,
		ComputeInfer: 75 * 19 * ms, ComputeOutput: 75 * ms / 20, CacheHits: 20, CacheMisses: 75, CacheHit: 20 * ms / 4, CacheMiss: 75 * ms / 2,
	}
	w.GPUs = []measure.GPUWindow{
		{UUID: "GPU-b", Utilization: 0.5, Power: 120.5, MemoryUsed: 2e9, MemoryTotal: 16e9, Energy: 19},
		{UUID: "GPU-a", Utilization: 0.256, Power: 100, MemoryUsed: 1e9, MemoryTotal: 16e9, Energy: 19},
	}
	w.Flags = []measure.Flag{measure.FlagDropped, measure.FlagLate}
	beside := window(time.Second, 0, ladder(5*ms, ms, 4)...)
	return perf.Level{
		Load: measure.Load{RequestRate: 100, BatchSize: 2}, Seed: 7, Begin: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), WarmUp: time.Second,
		Measurement: measure.Measurement{Windows: []measure.Window{w}}, Verdict: perf.VerdictUnstable, Limit: perf.LimitLikelyMet,
		Unfinished: 3, Waited: 1200 * ms,
		Others: []perf.Other{{Model: "bert", Load: measure.Load{Concurrency: 2, BatchSize: 1}, Measurement: measure.Measurement{Windows: []measure.Window{beside}}}},
	}
}

// failedLevel returns a level at which the server failed.
func failedLevel() perf.Level {
	return perf.Level{
		Load: measure.Load{Concurrency: 8, BatchSize: 1}, Begin: time.Date(2026, 1, 2, 3, 5, 5, 0, time.UTC),
		Verdict: perf.VerdictFailed, Failure: "the server completed no request for 10 s",
	}
}

func closedReport() perf.Report {
	return perf.Report{Settings: closedSettings(), Levels: []perf.Level{closedLevel(), failedLevel()}, Best: -1, Interrupted: true, Warnings: []string{"interrupted"}}
}

func openReport() perf.Report {
	return perf.Report{Settings: openSettings(), Levels: []perf.Level{openLevel()}, Best: 0}
}

// ensembleReport returns the closed loop with two models that the model calls, each for half of the
// time.
func ensembleReport() perf.Report {
	r := closedReport()
	half := measure.ServerStats{Requests: 190, Inferences: 190, Executions: 190, Success: 190 * 16 * ms, Queue: 190 * ms, ComputeInput: 190 * ms,
		ComputeInfer: 190 * 13 * ms, ComputeOutput: 190 * ms}
	r.Levels[0].Composing = []perf.Composing{{Model: "encode", Version: "1", Server: half}, {Model: "rank", Version: "3", Server: half}}
	return r
}

// check compares a text with a file of testdata.
func check(t *testing.T, name string, writeTo func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := writeTo(&b); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", name), b.Bytes())
}

func TestGolden(t *testing.T) {
	t.Parallel()
	closed, open, ensemble := closedReport(), openReport(), ensembleReport()
	for _, c := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"closed.banner.txt", func(w io.Writer) error { return Banner(w, closed.Settings) }},
		{"closed.txt", func(w io.Writer) error { return Text(w, closed.Levels[0], closed.Settings, 0) }},
		{"closed.summary.txt", func(w io.Writer) error { return Summary(w, closed) }},
		{"closed.csv", func(w io.Writer) error { return CSV(w, closed, false) }},
		{"closed.json", func(w io.Writer) error { return JSON(w, closed) }},
		{"closed.bench", func(w io.Writer) error { return Benchstat(w, closed) }},
		{"ensemble.txt", func(w io.Writer) error { return Text(w, ensemble.Levels[0], ensemble.Settings, 0) }},
		{"ensemble.csv", func(w io.Writer) error { return ComposingCSV(w, ensemble, ensemble.Levels[0].Composing[1]) }},
		{"failed.txt", func(w io.Writer) error { return Text(w, closed.Levels[1], closed.Settings, 0) }},
		{"open.banner.txt", func(w io.Writer) error { return Banner(w, open.Settings) }},
		{"open.txt", func(w io.Writer) error { return Text(w, open.Levels[0], open.Settings, 1) }},
		{"open.summary.txt", func(w io.Writer) error { return Summary(w, open) }},
		{"open.csv", func(w io.Writer) error { return CSV(w, open, true) }},
		{"open.json", func(w io.Writer) error { return JSON(w, open) }},
		{"open.bench", func(w io.Writer) error { return Benchstat(w, open) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			check(t, c.name, c.write)
			limited := &full{room: 10}
			if err := c.write(limited); !errors.Is(err, errFull) {
				t.Errorf("a full disk gives %v", err)
			}
		})
	}
}

// A load on another model without a window has no figures: a rate of 0 would be one.
func TestOtherModelThatWasNotMeasured(t *testing.T) {
	t.Parallel()
	l := openLevel()
	l.Others[0].Measurement.Windows = nil
	var b bytes.Buffer
	if err := Text(&b, l, openSettings(), 0); err != nil {
		t.Fatal(err)
	}
	if want := "    Beside: bert at concurrency 2: not measured, since the level was too short for a window of it\n"; !strings.Contains(b.String(), want) {
		t.Errorf("%q is not in\n%s", want, &b)
	}
}

// A decoupled model may answer each request once: windows do not store that number, and it is told
// nevertheless. Of other models programs get no number.
func TestResponsesOfDecoupledModels(t *testing.T) {
	t.Parallel()
	s, l := closedSettings(), closedLevel() // 190 requests in 2 s
	for _, c := range []struct {
		decoupled         bool
		second            int // stored responses of the second window
		text, cell, field string
	}{
		{false, 0, "", "", ""},
		{true, 0, "    Response Throughput: 95 infer/sec\n", "95", `"responses": 190,`},
		{true, 195, "    Response Throughput: 145 infer/sec\n", "145", `"responses": 290,`}, // 95 and 195 in 2 s
	} {
		s.Decoupled, l.Measurement.Windows[1].Responses = c.decoupled, c.second
		r := perf.Report{Settings: s, Levels: []perf.Level{l}, Best: -1}
		var text, table, document bytes.Buffer
		if err := errors.Join(Text(&text, l, s, 0), CSV(&table, r, false), JSON(&document, r)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), c.text) || !c.decoupled && strings.Contains(text.String(), "Response Throughput") {
			t.Errorf("%+v: text\n%s", c, &text)
		}
		rows := strings.Split(table.String(), "\n")
		if cells := strings.Split(rows[1], ","); c.decoupled && cells[2] != c.cell {
			t.Errorf("%+v: row %q", c, rows[1])
		}
		if !strings.Contains(document.String(), c.field) || !c.decoupled && strings.Contains(document.String(), `"responses"`) {
			t.Errorf("%+v: JSON\n%s", c, &document)
		}
	}
}

var errFull = errors.New("full")

// full is a writer with little room.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return 0, errFull
	}
	f.room -= len(p)
	return len(p), nil
}

// numbers matches the figures in which two runs differ.
var numbers = regexp.MustCompile(`\d+(\.\d+)?(e[+-]\d+)?`)

// blank removes numbers from lines.
func blank(text string) []string {
	return strings.Split(strings.TrimRight(numbers.ReplaceAllString(text, "#"), "\n"), "\n")
}

// TestLinesOfPerfAnalyzer checks that every line that perf_analyzer 2.51 printed for a run on our
// engine is there, in its order, except for the figures. Lines that differ on purpose are replaced
// first.
func TestLinesOfPerfAnalyzer(t *testing.T) {
	t.Parallel()
	none := func(*perf.Settings) {}
	for _, c := range []struct {
		file     string
		open     bool
		levels   int
		verbose  int
		settings func(*perf.Settings)
	}{
		{file: "pa.http.txt", settings: none},
		{file: "pa.http.verbose.txt", verbose: 1, settings: none},
		{file: "pa.grpc.percentile.txt", settings: func(s *perf.Settings) { s.Protocol, s.Percentile = "grpc", 95 }},
		{file: "pa.rate.txt", open: true, settings: none},
		{file: "pa.range.txt", levels: 2, settings: func(s *perf.Settings) {
			s.Batch, s.Levels.End, s.Metrics = 2, 2, true
		}},
		{file: "pa.binary.txt", levels: 2, settings: func(s *perf.Settings) {
			s.Protocol, s.Percentile, s.Async, s.Search, s.Levels.End, s.LatencyLimit = "grpc", 95, true, perf.SearchBinary, 4, time.Second
		}},
		{file: "pa.count.txt", settings: func(s *perf.Settings) { s.Protocol, s.Async, s.RequestCount = "grpc", true, 40 }},
	} {
		theirs, err := os.ReadFile(filepath.Join("testdata", c.file))
		if err != nil {
			t.Fatal(err)
		}
		s, l := closedSettings(), closedLevel()
		if c.open {
			l = openLevel()
			l.Load.BatchSize, l.Measurement.Windows[0].Late, l.Measurement.Windows[0].GPUs = 1, 0, nil
			s.Mode, s.Arrivals = perf.ModeRate, arrivals.Pattern{Kind: arrivals.ConstantKind}
		}
		// perf_analyzer measured three windows
		l.Measurement.Windows = append(l.Measurement.Windows, l.Measurement.Windows[0])
		s.Levels.End = 1
		s.Stop = perf.Stop{Rule: perf.RuleStability, Stability: 9, Trials: 3, Window: 300 * ms}
		c.settings(&s)
		r := perf.Report{Settings: s, Best: -1}
		var b bytes.Buffer
		errs := []error{Banner(&b, s)}
		for range max(1, c.levels) {
			r.Levels = append(r.Levels, l)
			errs = append(errs, Text(&b, l, s, c.verbose))
		}
		if err := errors.Join(append(errs, Summary(&b, r))...); err != nil {
			t.Fatal(err)
		}
		rest := blank(b.String())
		for _, line := range blank(string(theirs)) {
			i := slices.Index(rest, line)
			if i < 0 {
				t.Errorf("%s: %q is missing, or out of order, in\n%s", c.file, line, b.String())
				break
			}
			rest = rest[i+1:]
		}
	}
}

// TestLinesThatScriptsRead has expressions from lab/conformance, from NVIDIA's scripts, and from
// typical scripts.
func TestLinesThatScriptsRead(t *testing.T) {
	t.Parallel()
	s, l := closedSettings(), closedLevel()
	s.Percentile = 95
	var b bytes.Buffer
	if err := errors.Join(Text(&b, l, s, 0), Summary(&b, perf.Report{Settings: s, Levels: []perf.Level{l}, Best: -1})); err != nil {
		t.Fatal(err)
	}
	for expression, want := range map[string]string{
		`Request concurrency: ([0-9]+)`:                                                       "4",
		`Throughput: ([0-9.]+) infer/sec`:                                                     "95",
		`p95 latency: ([0-9]+) usec`:                                                          "40900",
		`Concurrency: 4, throughput: ([0-9.]+) infer/sec, latency [0-9]+ usec`:                "95",
		`(?m)^    p50 latency: ([0-9]+) usec$`:                                                "36500",
		`queue ([0-9]+) usec`:                                                                 "4000",
		`(?m)^  Server: \n    Inference count: ([0-9]+)`:                                      "190",
		`Avg request latency: ([0-9]+) usec`:                                                  "34000",
		`(?m)^Inferences/Second vs. Client (p95) Batch Latency\nConcurrency: 4, throughput: `: "p95",
	} {
		found := regexp.MustCompile(expression).FindStringSubmatch(b.String())
		if found == nil {
			t.Errorf("%s is not in\n%s", expression, b.String())
			continue
		}
		if got := found[1]; got != want && !closeTo(got, want) {
			t.Errorf("%s is %s, want %s", expression, got, want)
		}
	}
}

// closeTo allows a difference of 0.1 %, for the buckets of histograms.
func closeTo(got, want string) bool {
	a, errA := time.ParseDuration(got + "us")
	b, errB := time.ParseDuration(want + "us")
	return errA == nil && errB == nil && math.Abs(float64(a-b)) <= 0.001*float64(b)
}

func TestFiguresLikeCPlusPlus(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 411.2: "411.2", 1234567: "1.23457e+06", 123456: "123456", 99.999951: "100", 1e-5: "1e-05", 1407.8412: "1407.84"} {
		if got := six(v); got != want {
			t.Errorf("%g is printed as %s, want %s", v, got, want)
		}
	}
	// 12 ms in seconds, times 10^6, may be slightly below 12,000.
	for us, want := range map[float64]int64{0.012: 12000, 0.0000019: 1, 0.0123456: 12345, 0: 0} {
		if got := micros(us); got != want {
			t.Errorf("%g s are %d µs, want %d", us, got, want)
		}
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	p := perf.Progress{Load: measure.Load{Concurrency: 8, BatchSize: 1}, Elapsed: 12 * time.Second}
	if got, want := Live(p), " 12 s  concurrency 8  warming up"; got != want {
		t.Errorf("line is %q, want %q", got, want)
	}
	p.Window, p.Throughput, p.P50, p.P99, p.InFlight, p.Errors = 3, 412.34, 18*ms, 29800*time.Microsecond, 7.96, 2
	want := " 12 s  concurrency 8  window 3  412.3 infer/s  p50 18.0 ms  p99 29.8 ms  in flight 7.96  errors 2"
	if got := Live(p); got != want {
		t.Errorf("line is %q, want %q", got, want)
	}
}
