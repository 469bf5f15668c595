package paflags

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"tuner/internal/problems"
	"tuner/measure/arrivals"
	"tuner/perf"
	"tuner/spec/traffic"
)

// checkLoad reads the mode and the levels.
func (o *Options) checkLoad(p *problems.List, plan *Plan) {
	s := &plan.Settings
	concurrency := o.concurrency
	if o.given("concurrent-requests") || o.given("dynamic-concurrency") {
		concurrency = o.oldLevels()
	}
	var modes []string
	for _, flag := range []string{"concurrency-range", "request-rate-range", "request-intervals", "concurrent-requests", "dynamic-concurrency"} {
		isSecond := flag == "dynamic-concurrency" && o.given("concurrent-requests") // both make one range
		if o.given(flag) && !isSecond {
			modes = append(modes, "--"+flag)
		}
	}
	if o.given("max-concurrency") && !o.oldRange {
		p.Addf("-c %d needs -d: it is the end of a range", o.oldMost)
	}
	if len(modes) > 1 {
		p.Addf("%s: choose one of them, which makes the load", strings.Join(modes, ", "))
		return
	}
	var err error
	switch {
	case o.rate != "" || o.pattern != "":
		s.Mode = perf.ModeRate
		if s.Arrivals, err = o.arrivals(); err == nil {
			s.Levels, err = o.rates(s.Arrivals)
		}
	case o.intervals != "":
		s.Mode = perf.ModeIntervals
		s.Arrivals, err = readIntervals(o.intervals)
	default:
		s.Mode = perf.ModeConcurrency
		s.Levels, err = parseLevels("concurrency-range", concurrency, true)
	}
	p.Add(err)
	if o.given("request-distribution") && s.Mode != perf.ModeRate {
		p.Addf("--request-distribution is for --request-rate-range")
	}
	if o.given("request-distribution") && o.given("arrivals") {
		p.Addf("--request-distribution, --arrivals: keep one of the two")
	}
	if o.given("arrivals") && len(modes) > 0 && modes[0] != "--request-rate-range" {
		p.Addf("--arrivals is for --request-rate-range, and contradicts %s", modes[0])
	}
	if s.Mode != perf.ModeConcurrency && o.mode == "count_windows" && s.Arrivals.HasPeriod() {
		p.Addf("--measurement-mode count_windows: windows span whole periods of the arrivals (%s), whatever the number of requests", s.Arrivals)
	}
	o.checkSearch(p, s)
}

// oldLevels returns the range of -t, -c and -d, the options of perf_analyzer's first version.
func (o *Options) oldLevels() string {
	if !o.oldRange {
		return strconv.Itoa(o.oldConcurrency)
	}
	return fmt.Sprintf("%d:%d", max(1, o.oldConcurrency), o.oldMost)
}

func (o *Options) checkSearch(p *problems.List, s *perf.Settings) {
	l := s.Levels
	switch {
	case o.binarySearch && (l.Open || l.End <= l.Start):
		p.Addf("--binary-search needs a range with its start and a higher end")
	case o.binarySearch && o.threshold <= 0:
		p.Addf("--binary-search needs the latency limit that it searches for: -l MS")
	case l.Open && o.threshold <= 0:
		p.Addf("a range that ends at 0 goes up to the latency limit: add -l MS")
	}
	if o.threshold < 0 {
		p.Addf("-l %g: the latency limit must be above 0 ms", o.threshold)
	}
	switch {
	case o.binarySearch:
		s.Search = perf.SearchBinary
	case l.Open || l.End > l.Start:
		s.Search = perf.SearchLinear
	default:
		s.Search = perf.SearchNone
	}
}

// parseLevels reads START[:END[:STEP]]. An empty text is 1.
func parseLevels(flag, text string, whole bool) (perf.Levels, error) {
	bad := func(why string) (perf.Levels, error) {
		return perf.Levels{}, fmt.Errorf("--%s %q: %s; want START[:END[:STEP]]", flag, text, why)
	}
	if text == "" {
		text = "1"
	}
	parts := strings.Split(text, ":")
	if len(parts) > 3 {
		return bad("there are more than three numbers")
	}
	numbers := make([]float64, len(parts))
	for i, part := range parts {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return bad(fmt.Sprintf("%q is not a number", part))
		}
		if whole && v != math.Trunc(v) {
			return bad(fmt.Sprintf("%q is not a whole number", part))
		}
		numbers[i] = v
	}
	l := perf.Levels{Start: numbers[0], End: numbers[0], Step: 1}
	if len(numbers) > 1 {
		l.End = numbers[1]
	}
	if len(numbers) > 2 {
		l.Step = numbers[2]
	}
	l.Open = l.End == 0
	switch {
	case l.Start <= 0 || l.Step <= 0:
		return bad("start and step must be above 0")
	case !l.Open && l.End < l.Start:
		return bad("it ends below its start")
	}
	return l, nil
}

// arrivals returns when the requests of a rate are due.
func (o *Options) arrivals() (arrivals.Pattern, error) {
	if o.pattern == "" {
		p := arrivals.Pattern{Kind: arrivals.Kind(o.distribution)}
		if p.Kind != arrivals.ConstantKind && p.Kind != arrivals.PoissonKind {
			return arrivals.Pattern{}, fmt.Errorf("--request-distribution %q: allowed are constant and poisson; --arrivals has more", o.distribution)
		}
		return p, nil
	}
	p, err := traffic.Parse("arrivals", o.pattern)
	if err != nil || p.Kind != arrivals.TraceKind {
		return p, err
	}
	trace, err := arrivals.ReadTrace(p.File)
	if err != nil {
		return arrivals.Pattern{}, fmt.Errorf("--arrivals: %w", err)
	}
	p.Trace = &trace
	return p, nil
}

// rates returns the levels of a request rate. A trace without one has its own.
func (o *Options) rates(p arrivals.Pattern) (perf.Levels, error) {
	switch {
	case o.rate != "":
		return parseLevels("request-rate-range", o.rate, false)
	case p.Trace != nil:
		return perf.Levels{Start: p.Trace.Rate(), End: p.Trace.Rate(), Step: 1}, nil
	}
	return perf.Levels{}, fmt.Errorf("--arrivals %q needs a mean rate: add --request-rate-range RATE", o.pattern)
}

// readIntervals reads perf_analyzer's file of intervals.
func readIntervals(path string) (arrivals.Pattern, error) {
	f, err := os.Open(path)
	if err != nil {
		return arrivals.Pattern{}, fmt.Errorf("--request-intervals: %w", err)
	}
	defer f.Close()
	var trace arrivals.Trace
	list, err := arrivals.ParseIntervals(f)
	if err == nil {
		trace, err = arrivals.TraceOf(list)
	}
	if err != nil {
		return arrivals.Pattern{}, fmt.Errorf("--request-intervals %s: %w", path, err)
	}
	return arrivals.Pattern{Kind: arrivals.TraceKind, File: path, Trace: &trace}, nil
}
