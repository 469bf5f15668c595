package cli

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

	"tuner/meter"
	"tuner/perf"
)

// problems gathers what is wrong with a command line, so that all of it is told at once.
type problems struct{ list []string }

func (p *problems) addf(format string, args ...any) {
	p.list = append(p.list, fmt.Sprintf(format, args...))
}

// add notes an error unless it is nil.
func (p *problems) add(err error) {
	if err != nil {
		p.list = append(p.list, err.Error())
	}
}

// err is all of them as a usage error; nil when there are none.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return usageErrorf("%s", strings.Join(p.list, "\n"))
}

// check tells what the flags ask for, before any server is asked. warnings are for people.
func (o perfOptions) check() (plan perfPlan, warnings []string, err error) {
	var p problems
	for _, r := range refusedPerfFlags() {
		if o.given(r.name) {
			p.addf("--%s: %s", r.name, r.reason)
		}
	}
	plan.settings = perf.Settings{
		Program: "tuner " + toolVersion(), Model: o.model, Version: o.version, Percentile: o.percentile, Batch: o.batch,
		LatencyLimit: time.Duration(o.threshold * float64(time.Millisecond)), RequestCount: o.requestCount, WarmUpRequests: o.warmUpCount,
		Async: o.async || o.streaming, Streaming: o.streaming, Metrics: o.metrics, PID: o.pid, Seed: o.seed,
	}
	if o.seed == 0 {
		plan.settings.Seed = uint64(time.Now().UnixNano())
	}
	o.checkModel(&p, &plan)
	o.checkLoad(&p, &plan)
	o.checkStop(&p, &plan)
	o.checkCounts(&p, &plan)
	o.checkData(&p, &plan)
	o.checkConnection(&p, &plan)
	o.checkReports(&p, &plan)
	return plan, o.warnings(), p.err()
}

// warnings tell of flags that are obsolete, or of no account.
func (o perfOptions) warnings() []string {
	var list []string
	if o.given("concurrent-requests") || o.given("dynamic-concurrency") || o.given("max-concurrency") {
		list = append(list, "-t, -c and -d are obsolete: use --concurrency-range")
	}
	if o.given("measurement-request-count") && o.mode != "count_windows" {
		list = append(list, "--measurement-request-count is of no account without --measurement-mode count_windows")
	}
	if o.given("max-threads") && (!o.given("request-rate-range") || o.async) {
		list = append(list, "--max-threads is of no account here: the requests in flight do not depend on threads")
	}
	return list
}

func (o perfOptions) checkModel(p *problems, plan *perfPlan) {
	if o.model == "" {
		p.addf("-m: which model is to be measured?")
	}
	if o.given("bls-composing-models") {
		var err error
		plan.composing, err = parseComposing(o.composing)
		p.add(err)
	}
	if !strings.EqualFold(o.serviceKind, "triton") {
		p.addf("--service-kind %q: only triton is known", o.serviceKind)
	}
	if o.sharedMemory != "none" {
		p.addf("--shared-memory %q: tensors travel with the requests, only none is known", o.sharedMemory)
	}
}

// parseComposing reads MODEL[:VERSION],….
func parseComposing(text string) ([]meter.Model, error) {
	var models []meter.Model
	for part := range strings.SplitSeq(text, ",") {
		var m meter.Model
		m.Name, m.Version, _ = strings.Cut(strings.TrimSpace(part), ":")
		if m.Name == "" || slices.Contains(models, m) {
			return nil, fmt.Errorf("--bls-composing-models %q: expected is MODEL[:VERSION],…, each once", text)
		}
		models = append(models, m)
	}
	return models, nil
}

// checkStop finds the stop rule.
func (o perfOptions) checkStop(p *problems, plan *perfPlan) {
	stop := perf.Stop{Rule: perf.Rule(o.stop), Budget: o.budget, Stability: o.stability / 100, Trials: o.trials}
	if !o.given("stop") && (o.given("stability-percentage") || o.given("max-trials")) {
		stop.Rule = perf.RuleStability
	}
	var err error
	stop.Precision, err = parsePercent(o.precision)
	p.add(err)
	switch stop.Rule {
	case perf.RulePrecision:
		if o.given("stability-percentage") || o.given("max-trials") {
			p.addf("-s and -r belong to --stop stability")
		}
	case perf.RuleStability:
		stop.Window = 5 * time.Second
		if o.given("precision") || o.given("budget") {
			p.addf("--precision and --budget belong to --stop precision")
		}
	default:
		p.addf("--stop %q: allowed are precision and stability", o.stop)
	}
	if o.given("measurement-interval") {
		stop.Window = time.Duration(o.interval) * time.Millisecond
		if o.interval < 10 {
			p.addf("-p %d: a window must last 10 ms at least", o.interval)
		}
	}
	switch o.mode {
	case "time_windows":
	case "count_windows":
		stop.Requests = o.windowRequests
		if o.windowRequests < 1 {
			p.addf("--measurement-request-count %d: it must be 1 or more", o.windowRequests)
		}
	default:
		p.addf("--measurement-mode %q: allowed are time_windows and count_windows", o.mode)
	}
	if o.stability < 0 || o.trials < 1 || o.budget < 100*time.Millisecond {
		p.addf("-s must not be below 0, -r must be 1 or more, and --budget 100ms or more")
	}
	plan.settings.Stop = stop
}

// parsePercent reads 2% or 0.02.
func parsePercent(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if isPercent {
		v /= 100
	}
	if err != nil || !(v > 0 && v < 1) {
		return 0, fmt.Errorf("--precision %q: expected is a share above 0 and below 1, such as 2%% or 0.02", text)
	}
	return v, nil
}

// checkCounts checks the remaining numbers of the measurement.
func (o perfOptions) checkCounts(p *problems, plan *perfPlan) {
	if o.given("percentile") && (o.percentile < 1 || o.percentile > 99) {
		p.addf("--percentile %d: it must lie between 1 and 99", o.percentile)
	}
	if o.requestCount < 0 || o.warmUpCount < 0 {
		p.addf("--request-count and --warmup-request-count must not be below 0")
	}
	if s := plan.settings; o.requestCount > 0 && s.Mode == perf.ModeConcurrency && float64(o.requestCount) < max(s.Levels.Start, s.Levels.End) {
		p.addf("--request-count %d: there must be one request for each in flight", o.requestCount)
	}
	if o.timeout <= 0 || o.deadline < 0 || o.warmUp < 0 {
		p.addf("--timeout must be above 0, --deadline and --warm-up not below 0")
	}
	if o.given("warm-up") && o.warmUpCount > 0 {
		p.addf("--warm-up and --warmup-request-count: one of them ends the warm-up")
	}
	if o.maxOutstanding < 1 || o.maxThreads < 0 || o.maxThreads > 0 && o.given("max-outstanding") {
		p.addf("--max-outstanding must be 1 or more, and --max-threads, if it is given, stand alone")
	}
	plan.warmUp = o.warmUp
	if o.requestCount > 0 && !o.given("warm-up") {
		plan.warmUp = 0
	}
	plan.maxInFlight = o.maxOutstanding
	if o.maxThreads > 0 && !o.async {
		plan.maxInFlight = o.maxThreads
	}
	if o.cpus != "" {
		var err error
		plan.cpus, err = parseCPUs(o.cpus)
		p.add(err)
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
			return nil, fmt.Errorf("--client-cpus %q: expected is a list such as 0-2,4", text)
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// checkReports sees to it that a long run does not end at a file that cannot be written.
func (o perfOptions) checkReports(p *problems, plan *perfPlan) {
	switch o.output {
	case "text", "json", "benchstat":
	default:
		p.addf("--output %q: allowed are text, json and benchstat", o.output)
	}
	for _, file := range []struct{ flag, path string }{{"-f", o.csv}, {"--profile-export-file", o.export}, {"--plot", o.plot}} {
		if file.path == "" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(file.path)); err != nil || !info.IsDir() {
			p.addf("%s %s: there is no folder %s", file.flag, file.path, filepath.Dir(file.path))
		}
	}
	if o.export != "" {
		if _, err := os.Lstat(o.export); !errors.Is(err, fs.ErrNotExist) {
			p.addf("--profile-export-file %s: it exists, and would be overwritten", o.export)
		}
	}
	if o.verboseCSV && o.csv == "" {
		p.addf("--verbose-csv: there is no CSV file: -f FILE is missing")
	}
	if o.metricsInterval < 1 || o.pid < 0 {
		p.addf("--metrics-interval must be 1 or more, --pid not below 0")
	}
	if o.metricsURL != "" && !o.metrics {
		p.addf("--metrics-url: --collect-metrics is missing")
	}
	plan.gauge.PID, plan.gauge.Timeout = o.pid, o.timeout
	if o.metrics {
		plan.gauge.Interval = time.Duration(o.metricsInterval) * time.Millisecond
	}
}
