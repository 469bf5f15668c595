package paflags

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/problems"
	"tuner/measure"
	"tuner/perf"
	"tuner/runner/meter"
	"tuner/runner/payload"
	"tuner/runner/wire"
)

// Plan is the run that the flags describe.
type Plan struct {
	Settings  perf.Settings // without the values that only the server knows
	ModelFile string        // ONNX file; "": inputs follow the server's metadata
	Wire      wire.Options
	Format    wire.Format
	Source    payload.Source
	Composing []meter.Model // named by the user; none: those of an ensemble
	With      []With
	Gauge     meter.Options
	WarmUp    time.Duration
	// limit for a request of the load, and for a control request to the server
	Timeout     time.Duration
	Deadline    time.Duration // limit for the run; 0: none
	MaxInFlight int
	CPUs        []int // CPUs of the load generator; empty: all
	Reports     Reports
}

// With is a load on another model during the whole run.
type With struct {
	Model, Version string
	Load           measure.Load
	Source         payload.Source
}

// Check translates the flags. Its error lists all mistakes. warnings are for people; Check returns
// them with an error too.
func (o *Options) Check() (plan Plan, warnings []string, err error) {
	var p problems.List
	for _, r := range refusedFlags() {
		if o.given(r.name) {
			p.Addf("--%s: %s", r.name, r.reason)
		}
	}
	plan.Settings = perf.Settings{
		Model: o.model, Version: o.version, Percentile: o.percentile, Batch: o.batch,
		LatencyLimit: time.Duration(o.threshold * float64(time.Millisecond)), RequestCount: o.requestCount, WarmUpRequests: o.warmUpCount,
		Async: o.async || o.streaming, Streaming: o.streaming, Metrics: o.metrics, PID: o.pid, Seed: o.seed,
	}
	if o.seed == 0 {
		plan.Settings.Seed = uint64(time.Now().UnixNano())
	}
	plan.ModelFile, plan.Timeout, plan.Deadline, plan.Reports = o.modelFile, o.timeout, o.deadline, o.reports
	o.checkModel(&p, &plan)
	o.checkLoad(&p, &plan)
	o.checkStop(&p, &plan)
	o.checkCounts(&p, &plan)
	o.checkData(&p, &plan)
	o.checkConnection(&p, &plan)
	o.checkReports(&p, &plan)
	return plan, o.warnings(), exit.With(exit.Usage, p.Err())
}

// warnings returns warnings about flags that are obsolete or ignored.
func (o *Options) warnings() []string {
	var list []string
	if o.given("concurrent-requests") || o.given("dynamic-concurrency") || o.given("max-concurrency") {
		list = append(list, "-t, -c and -d are obsolete: use --concurrency-range")
	}
	if o.given("measurement-request-count") && o.mode != "count_windows" {
		list = append(list, "--measurement-request-count is ignored without --measurement-mode count_windows")
	}
	for _, flag := range []string{"stability-percentage", "max-trials", "measurement-mode", "measurement-interval"} {
		isOthers := flag == "measurement-interval" && len(o.with) > 0 // the windows of loads on other models
		switch {
		case !o.given(flag) || isOthers:
		case o.requestCount > 0:
			list = append(list, "--"+flag+" is ignored with --request-count, which makes one window of each level")
		case flag == "measurement-interval" && o.mode == "count_windows":
			list = append(list, "--measurement-interval is ignored with --measurement-mode count_windows")
		}
	}
	if o.given("max-threads") {
		list = append(list, "--max-threads is ignored: the requests in flight do not depend on threads")
	}
	return list
}

func (o *Options) checkModel(p *problems.List, plan *Plan) {
	if o.model == "" {
		p.Addf("no model given: name the one to measure with -m")
	}
	if o.given("bls-composing-models") {
		var err error
		plan.Composing, err = parseComposing(o.composing)
		p.Add(err)
	}
	if !strings.EqualFold(o.serviceKind, "triton") {
		p.Addf("--service-kind %q: only triton is known", o.serviceKind)
	}
	if o.sharedMemory != "none" {
		p.Addf("--shared-memory %q: tensors travel with the requests, only none is known", o.sharedMemory)
	}
}

// parseComposing reads MODEL[:VERSION],….
func parseComposing(text string) ([]meter.Model, error) {
	var models []meter.Model
	for part := range strings.SplitSeq(text, ",") {
		var m meter.Model
		m.Name, m.Version, _ = strings.Cut(strings.TrimSpace(part), ":")
		if m.Name == "" || slices.Contains(models, m) {
			return nil, fmt.Errorf("--bls-composing-models %q: want MODEL[:VERSION],…, each once", text)
		}
		models = append(models, m)
	}
	return models, nil
}

// checkStop reads the stop rule.
func (o *Options) checkStop(p *problems.List, plan *Plan) {
	stop := perf.Stop{Rule: perf.Rule(o.stop), Budget: o.budget, Stability: o.stability / 100, Trials: o.trials}
	if !o.given("stop") && (o.given("stability-percentage") || o.given("max-trials")) {
		stop.Rule = perf.RuleStability
	}
	var err error
	stop.Precision, err = parsePercent(o.precision)
	p.Add(err)
	switch stop.Rule {
	case perf.RulePrecision:
		if o.given("stability-percentage") || o.given("max-trials") {
			p.Addf("-s and -r need --stop stability")
		}
	case perf.RuleStability:
		stop.Window = 5 * time.Second
		if o.given("precision") || o.given("budget") {
			p.Addf("--precision and --budget need --stop precision")
		}
	default:
		p.Addf("--stop %q: allowed are precision and stability", o.stop)
	}
	if o.given("measurement-interval") {
		stop.Window = time.Duration(o.interval) * time.Millisecond
		if o.interval < 10 {
			p.Addf("-p %d: a window must last 10 ms at least", o.interval)
		}
	}
	switch o.mode {
	case "time_windows":
	case "count_windows":
		stop.Requests = o.windowRequests
		if o.windowRequests < 1 {
			p.Addf("--measurement-request-count %d: it must be 1 or more", o.windowRequests)
		}
	default:
		p.Addf("--measurement-mode %q: allowed are time_windows and count_windows", o.mode)
	}
	if o.requestCount > 0 && (o.given("stop") || o.given("precision") || o.given("budget")) {
		p.Addf("--stop, --precision and --budget say when a level ends, and so does --request-count: keep one of them")
	}
	if o.stability < 0 || o.trials < 1 || o.budget < 100*time.Millisecond {
		p.Addf("-s must not be below 0, -r must be 1 or more, and --budget 100ms or more")
	}
	plan.Settings.Stop = stop
}

// parsePercent reads 2% or 0.02.
func parsePercent(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if isPercent {
		v /= 100
	}
	if err != nil || !(v > 0 && v < 1) {
		return 0, fmt.Errorf("--precision %q: want a share above 0 and below 1, such as 2%% or 0.02", text)
	}
	return v, nil
}

// checkCounts reads the remaining numbers of the measurement.
func (o *Options) checkCounts(p *problems.List, plan *Plan) {
	if o.given("percentile") && (o.percentile < 1 || o.percentile > 99) {
		p.Addf("--percentile %d: it must lie between 1 and 99", o.percentile)
	}
	if o.requestCount < 0 || o.warmUpCount < 0 {
		p.Addf("--request-count and --warmup-request-count must not be below 0")
	}
	if s := plan.Settings; o.requestCount > 0 && s.Mode == perf.ModeConcurrency && float64(o.requestCount) < max(s.Levels.Start, s.Levels.End) {
		p.Addf("--request-count %d: there must be one request for each in flight", o.requestCount)
	}
	if !measure.Goodput(o.goodput).IsGoodput() && o.given("goodput") {
		p.Addf("--goodput %v: the limit on the latency must lie between 1µs and 10m", o.goodput)
	}
	plan.Settings.Goodput = o.goodput
	if o.timeout <= 0 || o.deadline < 0 || o.warmUp < 0 {
		p.Addf("--timeout must be above 0, --deadline and --warm-up not below 0")
	}
	if o.given("warm-up") && o.warmUpCount > 0 {
		p.Addf("--warm-up and --warmup-request-count contradict each other: keep one of the two")
	}
	if o.maxOutstanding < 1 {
		p.Addf("--max-outstanding must be 1 or more")
	}
	plan.WarmUp = o.warmUp
	if o.requestCount > 0 && !o.given("warm-up") {
		plan.WarmUp = 0
	}
	plan.MaxInFlight = o.maxOutstanding
	if o.cpus != "" {
		var err error
		plan.CPUs, err = parseCPUs(o.cpus)
		p.Add(err)
	}
}

// parseCPUs reads a list such as 0-2,4.
func parseCPUs(text string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from < 0 || to < from || to > 1<<16 {
			return nil, fmt.Errorf("--client-cpus %q: want a list such as 0-2,4", text)
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// checkReports finds files that cannot be written, so that a long run does not fail at its end.
func (o *Options) checkReports(p *problems.List, plan *Plan) {
	r := o.reports
	switch r.Output {
	case "text", "json", "benchstat":
	default:
		p.Addf("--format %q: allowed are text, json and benchstat", r.Output)
	}
	for _, file := range []struct{ flag, path string }{{"-f", r.CSV}, {"--profile-export-file", r.Export}, {"--plot", r.Plot}} {
		if file.path == "" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(file.path)); err != nil || !info.IsDir() {
			p.Addf("%s %s: there is no folder %s", file.flag, file.path, filepath.Dir(file.path))
		} else if err := durable.CheckNamed(file.path); err != nil {
			p.Addf("%s %s: it cannot be written: %v", file.flag, file.path, durable.Cause(err))
		}
	}
	if r.Export != "" {
		if _, err := os.Lstat(r.Export); !errors.Is(err, fs.ErrNotExist) {
			p.Addf("--profile-export-file %s: it exists, and would be overwritten", r.Export)
		}
	}
	if r.VerboseCSV && r.CSV == "" {
		p.Addf("--verbose-csv needs a CSV file: add -f FILE")
	}
	if o.metricsInterval < 1 || o.pid < 0 {
		p.Addf("--metrics-interval must be 1 or more, --pid not below 0")
	}
	if o.metricsURL != "" && !o.metrics {
		p.Addf("--metrics-url needs --collect-metrics")
	}
	plan.Gauge.PID, plan.Gauge.Timeout = o.pid, o.timeout
	if o.metrics {
		plan.Gauge.Interval = time.Duration(o.metricsInterval) * time.Millisecond
	}
}
