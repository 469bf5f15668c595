package html

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"tuner/analyze"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// Format is the version of the embedded data; it grows when a field changes its meaning or goes away.
const Format = 1

// document is the data that the page carries, described in docs/formats/report.md. Values are in base units. What many
// configurations have in common (loads, lines, reasons, flags) is in tables, of which they have the numbers, counted from 0.
type document struct {
	Format         int                 `json:"format"`
	Model          string              `json:"model"`
	Summary        string              `json:"summary"`
	IsRecorded     bool                `json:"recorded,omitempty"` // by another program: without intervals and counts
	Objective      []search.Term       `json:"objective"`
	Constraints    []search.Constraint `json:"constraints"`
	Latency        measure.Metric      `json:"latency"` // of charts and Pareto sets
	RankedBy       string              `json:"ranked_by"`
	At             *measure.Load       `json:"at,omitempty"`
	TwoServers     bool                `json:"two_servers,omitempty"` // what is confirmed is of another one than the rest
	Believes       bool                `json:"believes,omitempty"`    // the ranking rests on what a strategy believes, too
	Top            int                 `json:"top"`
	Metrics        []metric            `json:"metrics"`
	Knobs          []knob              `json:"knobs"`
	Loads          []measure.Load      `json:"loads"`
	Lines          []string            `json:"lines"`
	Flags          []string            `json:"flags"`
	Reasons        []string            `json:"reasons"`
	Phases         []search.Phase      `json:"phases"`
	Configurations []configuration     `json:"configurations"`
	Pareto         []front             `json:"pareto"`
	FirstStage     *int                `json:"first_stage,omitempty"`
	Latencies      []latencies         `json:"latencies"`
	Effects        []knobEffect        `json:"effects"`
	Trials         [][]any             `json:"trials"`
}

type metric struct {
	Name          measure.Metric `json:"name"`
	Label         string         `json:"label"`
	Unit          measure.Unit   `json:"unit"`
	HigherBetter  bool           `json:"higher_better"`
	FallsWithLoad bool           `json:"falls_with_load,omitempty"`
	Interval      bool           `json:"interval"` // points carry its interval
}

// isExact reports whether the metric has a say in rankings and Pareto sets: the page must read the very figures that they come from.
func (m metric) isExact() bool { return m.Interval || m.Name == measure.Memory }

type knob struct {
	Name   string         `json:"name"`
	Values []search.Value `json:"values"`
}

type configuration struct {
	Name         string   `json:"name"`
	Title        string   `json:"title"`
	Default      bool     `json:"default,omitempty"`
	CurveOnly    bool     `json:"curve_only,omitempty"`
	FailedFinals bool     `json:"failed_finals,omitempty"`
	Rank         int      `json:"rank,omitempty"`
	Tie          int      `json:"tie,omitempty"`  // the first rank of those that are tied with it
	Gain         figures  `json:"gain,omitempty"` // value, lo, hi
	Best         *int     `json:"best,omitempty"` // number of the point that it is ranked by
	Threads      int      `json:"threads"`        // of all instances together
	Differences  int      `json:"differences"`    // from the default's setup
	Settings     []int    `json:"settings"`       // by knob the number of its value; -1: left alone
	Points       [][]any  `json:"points,omitempty"`
	Failures     [][2]int `json:"failures,omitempty"` // load, reason
	Config       []int    `json:"config"`             // lines of its config.pbtxt
}

// front is a Pareto set.
type front struct {
	Metrics []measure.Metric `json:"metrics"`
	Points  [][2]int         `json:"points"` // configuration, number of its point
}

type latencies struct {
	Configuration int         `json:"configuration"`
	Load          int         `json:"load"`
	Requests      int         `json:"requests"`
	Quantiles     [][2]figure `json:"quantiles"` // share of the requests, s
}

type knobEffect struct {
	Knob   string       `json:"knob"`
	Chosen search.Value `json:"chosen"`
	Others []effect     `json:"others"`
}

type effect struct {
	Value  search.Value `json:"value"`
	Basis  search.Basis `json:"basis"`
	Change figures      `json:"change,omitempty"` // value, lo, hi
	Misses string       `json:"misses,omitempty"`
}

// figure is a number with five significant digits, null where there is none.
type figure float64

// MarshalJSON implements json.Marshaler.
func (f figure) MarshalJSON() ([]byte, error) { return f.appendTo(nil), nil }

func (f figure) appendTo(text []byte) []byte { return appendNumber(text, float64(f), 5) }

// exact is a number with as many digits as it takes to read the same one back, null where there is none.
type exact float64

// MarshalJSON implements json.Marshaler.
func (e exact) MarshalJSON() ([]byte, error) { return e.appendTo(nil), nil }

func (e exact) appendTo(text []byte) []byte { return appendNumber(text, float64(e), -1) }

func appendNumber(text []byte, v float64, digits int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(text, "null"...)
	}
	return strconv.AppendFloat(text, v, 'g', digits, 64)
}

// figures are printed at once: a page of ten thousand configurations has a million.
type figures []numeral

// numeral is a figure or an exact.
type numeral interface{ appendTo(text []byte) []byte }

// MarshalJSON implements json.Marshaler.
func (list figures) MarshalJSON() ([]byte, error) {
	if list == nil {
		return []byte("null"), nil
	}
	text := []byte{'['}
	for i, f := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = f.appendTo(text)
	}
	return append(text, ']'), nil
}

func figuresOf(e measure.Estimate) figures {
	return figures{figure(e.Value), figure(e.Lo), figure(e.Hi)}
}

// table numbers values in the order of their first use.
type table[T comparable] struct {
	list   []T
	number map[T]int
}

func newTable[T comparable]() *table[T] { return &table[T]{list: []T{}, number: map[T]int{}} }

func (t *table[T]) of(value T) int {
	n, ok := t.number[value]
	if !ok {
		n = len(t.list)
		t.number[value] = n
		t.list = append(t.list, value)
	}
	return n
}

// builder makes the document.
type builder struct {
	page                  Page
	metrics               []metric
	knobs                 []*table[search.Value]
	names                 *table[string] // of knobs
	loads                 *table[measure.Load]
	lines, flags, reasons *table[string]
	phases                *table[search.Phase]
	configurations        map[string]int // by name
	failures              map[string][]analyze.Failure
	base                  analyze.Setup // the default's
}

func newDocument(p Page) document {
	r := p.Result
	b := builder{
		page: p, metrics: metricsOf(p), names: newTable[string](), loads: newTable[measure.Load](), lines: newTable[string](),
		flags: newTable[string](), reasons: newTable[string](), phases: newTable[search.Phase](),
		configurations: map[string]int{}, failures: map[string][]analyze.Failure{}, base: r.Default().Setup,
	}
	for i, c := range r.Configs {
		b.configurations[c.Name] = i
	}
	for _, f := range r.Failures {
		b.failures[f.Name] = append(b.failures[f.Name], f)
	}
	d := document{
		Format: Format, Model: r.Header.Model, Summary: p.Verdict.Summary, IsRecorded: r.Recorded != "", Objective: r.Goal.Objective.Terms,
		Constraints: slices.Concat([]search.Constraint{}, r.Goal.Constraints), Latency: r.Goal.Latency(),
		RankedBy: cmp.Or(r.Rank, spec.RankScore), At: r.At, TwoServers: r.Header.Finals != nil, Believes: believes(r),
		Top: r.Top, Metrics: b.metrics, Configurations: make([]configuration, len(r.Configs)), Knobs: []knob{},
	}
	b.nameKnobs()
	for i, c := range r.Configs {
		d.Configurations[i] = b.configuration(i, c)
	}
	for i, name := range b.names.list {
		d.Knobs = append(d.Knobs, knob{name, b.knobs[i].list})
	}
	if i, ok := b.configurations[r.FirstStage]; ok {
		d.FirstStage = &i
	}
	d.Pareto, d.Latencies, d.Effects, d.Trials = b.pareto(), b.latencies(), b.effects(), b.trials()
	d.Loads, d.Lines, d.Flags, d.Reasons, d.Phases = b.loads.list, b.lines.list, b.flags.list, b.reasons.list, b.phases.list
	return d
}

// metricsOf lists what is known of any point: the metrics of tables, and the goal's others.
func metricsOf(p Page) []metric {
	goal := p.Result.Goal.Metrics()
	known := map[measure.Metric]bool{}
	for _, c := range p.Result.Configs {
		for _, point := range c.Points {
			for m := range point.Values {
				known[m] = true
			}
		}
	}
	all := measure.Metrics()
	for _, m := range goal {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	list := []metric{}
	for _, m := range all {
		if !known[m] {
			continue
		}
		info, _ := m.Info()
		hasInterval := m == measure.Throughput || m == measure.LatencyP99 || slices.Contains(goal, m)
		list = append(list, metric{m, p.Labels[m], info.Unit, info.HigherBetter, search.FallsWithLoad(m), hasInterval})
	}
	return list
}

// nameKnobs numbers the knobs that any configuration sets.
func (b *builder) nameKnobs() {
	for _, c := range b.page.Result.Configs {
		for _, s := range c.Candidate.Settings() {
			if b.names.of(s.Knob) == len(b.knobs) {
				b.knobs = append(b.knobs, newTable[search.Value]())
			}
		}
	}
}

func (b *builder) configuration(i int, c analyze.Config) configuration {
	j := configuration{
		Name: c.Name, Title: b.page.Titles[i], Default: c.Candidate.IsDefault(), CurveOnly: c.CurveOnly, FailedFinals: c.FailedFinals, Rank: c.Rank,
		Tie: b.tie(c), Threads: c.Setup.Threads(b.page.Result.Cores), Differences: c.Setup.Differences(b.base),
		Settings: slices.Repeat([]int{-1}, len(b.knobs)),
	}
	for _, s := range c.Candidate.Settings() {
		n := b.names.of(s.Knob)
		j.Settings[n] = b.knobs[n].of(s.Value)
	}
	for line := range strings.Lines(c.Text) {
		j.Config = append(j.Config, b.lines.of(strings.TrimSuffix(line, "\n")))
	}
	if c.Gain != nil {
		j.Gain = figures{exact(c.Gain.Value), exact(c.Gain.Lo), exact(c.Gain.Hi)}
	}
	for n, p := range c.Points {
		if c.Best != nil && p.Load == c.Best.Load {
			j.Best = &n
		}
		j.Points = append(j.Points, b.point(p))
	}
	for _, f := range b.failures[c.Name] {
		j.Failures = append(j.Failures, [2]int{b.loads.of(f.Load), b.reasons.of(string(f.Stage) + ": " + f.Reason)})
	}
	return j
}

// tie is the first rank of the group that a configuration is in, 0 in none. The first of the others, or else it itself, is the first of them all.
func (b *builder) tie(c analyze.Config) int {
	if len(c.TiedWith) == 0 {
		return 0
	}
	if i, known := b.configurations[c.TiedWith[0]]; known {
		return min(c.Rank, b.page.Result.Configs[i].Rank)
	}
	return c.Rank
}

// believes reports whether the strategy had a say in the ranking: one that judges by a model of the server knows service curves.
func believes(r analyze.Result) bool {
	return r.ByBestLoad() && slices.ContainsFunc(r.Explanation.Subjects, func(s analyze.Subject) bool { return s.Curve != nil })
}

// pareto are the result's Pareto sets.
func (b *builder) pareto() []front {
	list := []front{}
	for _, f := range b.page.Result.Fronts {
		drawn := front{Metrics: f.Metrics, Points: [][2]int{}}
		for _, p := range f.Points {
			c := b.configurations[p.Name]
			at := slices.IndexFunc(b.page.Result.Configs[c].Points, func(q analyze.Point) bool { return q.Load == p.Load })
			drawn.Points = append(drawn.Points, [2]int{c, at})
		}
		list = append(list, drawn)
	}
	return list
}

// The parts of a point's state.
const (
	stateConfirmed = 1
	stateRefused   = 2 // too many requests failed, whatever the other limits
)

// point is a row: load, state, values, intervals, counts, and where there are any flags and what the search had measured.
func (b *builder) point(p analyze.Point) []any {
	state := 0
	if p.Confirmed {
		state += stateConfirmed
	}
	excess := refusal(p.Misses)
	if excess > 0 {
		state += stateRefused
	}
	values, intervals := b.figures(p.Sample)
	counts := figures{exact(p.Windows), exact(p.Launches), exact(p.Requests), exact(p.Errors), figure(p.MeanBatch)}
	if state > 0 {
		counts = append(counts, exact(excess))
	}
	row := []any{b.loads.of(p.Load), state, values, intervals, counts}
	if len(p.Flags) > 0 || p.Searched != nil {
		flags := []int{}
		for _, f := range p.Flags {
			flags = append(flags, b.flags.of(f.Text()))
		}
		row = append(row, flags)
	}
	if p.Searched != nil {
		values, intervals := b.figures(*p.Searched)
		row = append(row, []figures{values, intervals})
	}
	return row
}

// refusal is by how much the limit on failed requests that every goal has is missed, relative; 0 where it is kept. It stands last.
func refusal(misses []search.Miss) float64 {
	if n := len(misses); n > 0 && misses[n-1].Constraint.Metric == measure.ErrorRate {
		return misses[n-1].Violation
	}
	return 0
}

// figures are a sample's values by metric, and lo and hi of those with an interval.
func (b *builder) figures(s analyze.Sample) (values, intervals figures) {
	for _, m := range b.metrics {
		e, ok := s.Values[m.Name]
		if !ok {
			e = measure.Estimate{Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
		}
		if m.isExact() {
			values = append(values, exact(e.Value))
		} else {
			values = append(values, figure(e.Value))
		}
		if m.Interval {
			intervals = append(intervals, exact(e.Lo), exact(e.Hi))
		}
	}
	return values, intervals
}

// shares are the quantiles of a distribution that the page draws, closer where the tail is.
var shares = [...]float64{0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.965, 0.98, 0.99,
	0.9925, 0.995, 0.9965, 0.998, 0.999, 0.9995, 0.9999, 0.99995, 0.99999}

// latencies are the distributions of the configurations that are explained, as far as their requests tell the tail.
func (b *builder) latencies() []latencies {
	list := []latencies{}
	for _, s := range b.page.Result.Explanation.Subjects {
		count := s.Latencies.Count()
		if count == 0 {
			continue
		}
		l := latencies{Configuration: b.configurations[s.Name], Load: b.loads.of(s.Load), Requests: count}
		for _, q := range shares {
			if (1-q)*float64(count) >= 1 {
				l.Quantiles = append(l.Quantiles, [2]figure{figure(q), figure(s.Latencies.Quantile(q).Seconds())})
			}
		}
		list = append(list, l)
	}
	return list
}

func (b *builder) effects() []knobEffect {
	list := []knobEffect{}
	for _, k := range b.page.Result.Explanation.Knobs {
		j := knobEffect{Knob: k.Knob, Chosen: k.Chosen, Others: []effect{}}
		for _, other := range k.Others {
			e := effect{Value: other.Value, Basis: other.Basis}
			switch {
			case len(other.Misses) > 0:
				e.Misses = other.Misses[0].String()
			case other.Basis != search.BasisUnknown:
				e.Change = figuresOf(other.Change)
			}
			j.Others = append(j.Others, e)
		}
		list = append(list, j)
	}
	return list
}

// trials are rows: seconds since the campaign's start, configuration, load, phase, and 1 for one that failed.
func (b *builder) trials() [][]any {
	list := [][]any{}
	for _, s := range b.page.Result.Course {
		row := []any{figure(s.Elapsed.Seconds()), b.configurations[s.Name], b.loads.of(s.Load), b.phases.of(s.Phase)}
		if s.Failed {
			row = append(row, 1)
		}
		list = append(list, row)
	}
	return list
}
