//go:build conformance

package conformance

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/journal"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// tried is a limit that a reader types into a field of report.html.
type tried struct {
	Label  string `json:"label"` // of the field
	Text   string `json:"text"`  // "" is no limit
	metric measure.Metric
	bound  float64 // in the metric's base unit; 0 is none
}

func latencyLimit(m measure.Metric, ms float64) tried {
	return tried{strings.TrimPrefix(string(m), "latency_") + " ≤ (ms)", fieldText(ms), m, ms / 1e3}
}

func memoryLimit(mb float64) tried {
	return tried{"memory ≤ (MB)", fieldText(mb), measure.Memory, mb * 1e6}
}

func throughputLimit(least float64) tried {
	return tried{"throughput ≥ (infer/s)", fieldText(least), measure.Throughput, least}
}

func fieldText(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// within is a goal with limits in place of its own: its constraints in their order, then the new ones.
func within(goal search.Goal, limits []tried) search.Goal {
	goal.Constraints = slices.Clone(goal.Constraints)
	for _, l := range limits {
		i := slices.IndexFunc(goal.Constraints, func(c search.Constraint) bool { return c.Metric == l.metric })
		c := search.Constraint{Metric: l.metric, Max: &l.bound}
		if l.metric == measure.Throughput {
			c.Min, c.Max = &l.bound, nil
		}
		switch {
		case l.bound == 0 && i >= 0:
			goal.Constraints = slices.Delete(goal.Constraints, i, i+1)
		case l.bound == 0:
		case i >= 0:
			goal.Constraints[i] = c
		default:
			goal.Constraints = append(goal.Constraints, c)
		}
	}
	return goal
}

// expected is what report.html must show within limits.
type expected struct {
	Limits []tried  `json:"limits"`
	Rows   []row    `json:"rows"`
	Pareto []string `json:"pareto"` // points of the Pareto set of three metrics
	// The fronts of throughput and latency, and of throughput and memory.
	LatencyFront []string `json:"latency_front"`
	MemoryFront  []string `json:"memory_front"`
	Drawn        int      `json:"drawn"` // points in a chart: those of the best one's server
}

// row is a row of the table: its cells.
type row struct {
	Rank string `json:"rank"`
	Name string `json:"name"`
	Load string `json:"load"`
	Gain string `json:"gain"`
	OK   string `json:"ok"`
}

const unknownCell = "–"

func newExpected(r analyze.Result, limits []tried) expected {
	e := expected{Limits: limits, Rows: []row{}}
	for _, c := range r.Configs {
		e.Rows = append(e.Rows, newRow(r, c))
	}
	latency := r.Goal.Latency()
	e.Pareto = frontOf(r, measure.Throughput, latency, measure.Memory)
	best := r.Configs[0].Best
	for _, c := range r.Configs {
		for _, p := range c.Points {
			if p.Values[measure.Throughput].Value > 0 && p.Values[latency].Value > 0 && (best == nil || r.AreComparable(*best, p)) {
				e.Drawn++
			}
		}
	}
	e.LatencyFront, e.MemoryFront = frontOf(r, measure.Throughput, latency), frontOf(r, measure.Throughput, measure.Memory)
	return e
}

func shortName(r analyze.Result, name string) string {
	if name == r.Default().Name {
		return "default"
	}
	return strings.TrimPrefix(name, r.Header.Model+"_")
}

func newRow(r analyze.Result, c analyze.Config) row {
	cells := row{Rank: unknownCell, Name: shortName(r, c.Name), Load: unknownCell, Gain: unknownCell, OK: unknownCell}
	if c.Best == nil {
		return cells
	}
	cells.Rank, cells.Load, cells.OK = strconv.Itoa(c.Rank), strconv.FormatFloat(c.Best.Load.Level(), 'g', 6, 64), chanceCell(c)
	if len(c.TiedWith) > 0 {
		first := c.Rank
		for _, name := range c.TiedWith {
			if other, ok := r.Config(name); ok {
				first = min(first, other.Rank)
			}
		}
		cells.Rank = "=" + strconv.Itoa(first)
	}
	switch {
	case c.Gain == nil:
	case c.Candidate.IsDefault():
		cells.Gain = "1"
	default:
		cells.Gain = fmt.Sprintf("%.2f ±%.2f", c.Gain.Value, (c.Gain.Hi-c.Gain.Lo)/2)
	}
	return cells
}

func chanceCell(c analyze.Config) string {
	switch p := c.Best.Probability(); {
	case !c.Satisfies():
		return "no"
	case len(c.Best.Chances) == 0:
		return "yes"
	case p > 0.99:
		return ">99 %"
	case p < 0.01:
		return "<1 %"
	default:
		return fmt.Sprintf("%.0f %%", 100*p)
	}
}

// frontOf are the points of a result's Pareto set, in no order.
func frontOf(r analyze.Result, metrics ...measure.Metric) []string {
	list := []string{}
	for _, f := range r.Fronts {
		if slices.Equal(f.Metrics, metrics) {
			for _, p := range f.Points {
				list = append(list, fmt.Sprintf("%s at %s", shortName(r, p.Name), p.Load))
			}
		}
	}
	slices.Sort(list)
	return list
}

// mixed is a campaign in which every rule of the ranking counts: near ties, equal figures, finalists whose launches differ or fail, a failure, a
// configuration that refuses requests, and one of the load curves that is better than all.
func mixed(t *testing.T, profile string) analyze.Campaign {
	best, second, refusing := analyzetest.Candidate(2, 1, 16), analyzetest.Candidate(2, 1, 32), analyzetest.Candidate(4, 1, 8)
	b := analyzetest.New(t, profile).Measure(search.Candidate{}, 2, 4, 8, 16)
	for _, c := range []search.Candidate{
		analyzetest.Candidate(1, 1, 4), analyzetest.Candidate(1, 2, 8), analyzetest.Candidate(2, 1, 4), analyzetest.Candidate(2, 1, 8), best, second,
		analyzetest.Candidate(2, 1, 64), analyzetest.Candidate(2, 2, 16), refusing, analyzetest.Candidate(4, 1, 16), analyzetest.Candidate(1, 2, 16), analyzetest.Candidate(1, 2, 32),
	} {
		b.Measure(c, 4, 8, 16, 32)
	}
	for _, c := range []search.Candidate{ // the same figures: threads, differences from the default, and names decide
		analyzetest.Candidate(3, 2, 8), analyzetest.Candidate(3, 1, 8), analyzetest.Candidate(3, 1, 4), analyzetest.Candidate(3, 1, 16),
	} {
		b.Given(c, 8, 500, 16e6)
	}
	b.Fail(analyzetest.Candidate(8, 2, 64), 8, measure.StageStart, "the engine was not ready after 1m0s")
	// By the windows of the search it is as good as the best.
	b.FailFinal(analyzetest.Candidate(2, 1, 64), 16)
	for range 2 { // of three the figures' own intervals would tell the spread between launches
		b.Confirm(best, 16).Confirm(search.Candidate{}, 8).Confirm(second, 16)
	}
	b.Given(second, 18, 750, 24*time.Millisecond) // better than at 16, where its finals may miss a limit that it keeps here
	threads := search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"}
	c := b.Curve(search.NewCandidate(threads), 8, 16).End("the space is exhausted", false).Campaign()
	for _, e := range c.Events {
		windows, pace := e.Measurement.Windows, 100 // per cent of the formula's time
		switch {
		case e.Trial.Candidate.Key() == refusing.Key(): // of both windows' requests 1.4 % to 2.8 %, by load
			windows[0].Errors = windows[0].Requests * (24 + e.Trial.Load.Concurrency) / 1000
		case e.Trial.Phase == search.PhaseFinal && e.Measurement.Launch%2 == 0: // launches differ by more than their windows tell
			pace = 104
		case e.Trial.Phase == search.PhaseCurve: // the best of all
			pace = 85
		}
		for i := range windows {
			windows[i].Duration = windows[i].Duration * time.Duration(pace) / 100
		}
	}
	return c
}

// ratesOf is a campaign with request rates in place of concurrencies.
func ratesOf(c analyze.Campaign) analyze.Campaign {
	c.Events = slices.Clone(c.Events)
	for i := range c.Events {
		load := &c.Events[i].Trial.Load
		load.Concurrency, load.RequestRate = 0, 12.5*float64(load.Concurrency)
	}
	return c
}

// ranking is a campaign, how it is looked at, and limits that are tried out.
type ranking struct {
	campaign analyze.Campaign
	options  analyze.Options
	limits   [][]tried
}

// rankings are the campaigns by name. Every list of limits has latencies before memory, as the page's fields.
func rankings(t *testing.T) map[string]ranking {
	profile := func(goal string) string {
		head, _, _ := strings.Cut(analyzetest.Profile, "objective:")
		return head + goal
	}
	const rates = "load: {request_rate: {min: 25, max: 800, scale: pow2}, inputs: {shape: {input_ids: [32]}}}\n"
	p95 := func(ms float64) tried { return latencyLimit(measure.LatencyP95, ms) }
	p99 := func(ms float64) tried { return latencyLimit(measure.LatencyP99, ms) }
	single := mixed(t, analyzetest.Profile)
	tries := [][]tried{
		nil, {p99(40)}, {p99(30)}, {p99(25)}, {p99(20)}, {p99(15)}, {p99(12)}, {p99(9)}, {p99(3)}, {p99(0)}, {memoryLimit(250)}, {memoryLimit(150)},
		{p99(30), memoryLimit(300)}, {p99(13), memoryLimit(200)}, {p99(0), memoryLimit(250)}, {p99(2), memoryLimit(150)},
	}
	weighted := mixed(t, profile("weights: {throughput: 2, latency_p99: 1}\nconstraints: {latency_p95: {max: 60ms}, memory: {max: 400MB}}\n"))
	queue := mixed(t, profile("objective: queue\nconstraints: {latency_p99: {max: 50ms}}\n"))
	latency := mixed(t, profile("objective: latency_p99\nconstraints: {throughput: {min: 200}}\n"))
	open := ratesOf(mixed(t, strings.Replace(analyzetest.Profile, "load: {concurrency: {min: 1, max: 64, scale: pow2}, inputs: {shape: {input_ids: [32]}}}\n", rates, 1)))
	servers := single
	servers.Header.Finals = &journal.ServerInfo{Mode: "remote", Where: "gpu7:8001", Name: "triton", Version: "2.51.0"}
	return map[string]ranking{
		"one metric": {single, analyze.Options{Top: 3}, tries},
		"weights": {weighted, analyze.Options{Top: 3}, [][]tried{
			nil, {p95(30)}, {p95(18)}, {p95(18), memoryLimit(250)}, {p95(0), memoryLimit(0)}, {p99(15)}, {p95(3)}, {p95(12), p99(14), memoryLimit(300)},
		}},
		"latency": {latency, analyze.Options{Top: 3}, [][]tried{
			nil, {throughputLimit(300)}, {throughputLimit(450)}, {throughputLimit(600)}, {throughputLimit(5000)}, {throughputLimit(0)}, {throughputLimit(300), p99(20), memoryLimit(250)},
		}},
		"without a score":                     {queue, analyze.Options{Top: 3}, tries}, // where no request waits
		"request rates":                       {open, analyze.Options{Top: 3}, tries},
		"the mean of three":                   {single, analyze.Options{Top: 3, Rank: spec.RankTop3Mean}, tries},
		"at one load":                         {single, analyze.Options{Top: 3, At: spec.At{Load: measure.Load{Concurrency: 8}}}, tries},
		"finals elsewhere":                    {servers, analyze.Options{Top: 3}, tries},
		"the mean of three, finals elsewhere": {servers, analyze.Options{Top: 3, Rank: spec.RankTop3Mean}, tries},
		"a model of the server":               {recordedCampaign(t, "guided"), analyze.Options{Top: 3}, [][]tried{nil, {p99(45)}, {p99(30)}, {p99(20)}, {p99(10)}, {p99(0)}, {memoryLimit(300)}}},
	}
}

func recordedCampaign(t *testing.T, name string) analyze.Campaign {
	t.Helper()
	c, err := analyze.Replay(filepath.Join("..", "..", "testdata", "journals", name))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// byFigures is a campaign whose strategy believes nothing: within limits that are tried out the page goes by figures alone.
func byFigures(c analyze.Campaign) analyze.Campaign {
	c.Profile.Search.Strategy = "grid"
	c.Events = slices.DeleteFunc(slices.Clone(c.Events), func(e search.Event) bool {
		return e.Trial.Phase == search.PhaseService && e.Measurement.Failure == nil
	})
	return c
}

// TestReportRanking tries limits out in report.html, and compares order, ties, loads, gains, probabilities and Pareto sets with what package
// analyze says within the same limits.
func TestReportRanking(t *testing.T) {
	analyzed := func(c analyze.Campaign, o analyze.Options) analyze.Result {
		t.Helper()
		r, err := analyze.Analyze(c, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for name, ranking := range rankings(t) {
		own := analyzed(ranking.campaign, ranking.options)
		var cases []expected
		for _, limits := range ranking.limits {
			r := own
			if len(limits) > 0 {
				goal, o := within(ranking.campaign.Profile.Goal, limits), ranking.options
				o.Goal = &goal
				r = analyzed(byFigures(ranking.campaign), o)
			}
			cases = append(cases, newExpected(r, limits))
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := pageOf(t, own)
			text, err := json.Marshal(cases)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "expected.json"), text)
			browse(t, dir, "ranked", strings.ReplaceAll(name, " ", "-"))
		})
	}
}
