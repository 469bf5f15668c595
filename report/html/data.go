package html

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"tuner/analyze"
	"tuner/measure"
	"tuner/report/figures"
	"tuner/search"
	"tuner/search/verdict"
	"tuner/spec"
)

// DataFormat is the version of the embedded data. It increases when a field changes its meaning or
// disappears.
const DataFormat = 2

// document is the data that the page carries; docs/reference/report-data-fields.md is made of it.
// Values are in base units. Values that many configurations share (loads, lines, reasons, flags) are in tables.
// Configurations refer to them by index, counted from 0.
type document struct {
	Format     int    `json:"format"`             // version of this format: 2
	Model      string `json:"model"`              // served name of the model
	Summary    string `json:"summary"`            // the result in a sentence
	IsRecorded bool   `json:"recorded,omitempty"` // the figures are of another program: without intervals and counts
	// metrics of the objective, with their weights
	Objective   []search.Term       `json:"objective"`
	Constraints []search.Constraint `json:"constraints"` // limits that a configuration must keep
	Latency     measure.Metric      `json:"latency"`     // the latency metric of charts and Pareto sets
	RankedBy    string              `json:"ranked_by"`   // what ranks configurations: score or top3-mean
	// confirmed points come from another server than the rest
	TwoServers     bool            `json:"two_servers,omitempty"`
	Top            int             `json:"top"`            // number of configurations that charts highlight; 0: five
	Metrics        []metric        `json:"metrics"`        // metrics of points
	Knobs          []knob          `json:"knobs"`          // knobs that any configuration sets
	Loads          []measure.Load  `json:"loads"`          // loads
	Lines          []string        `json:"lines"`          // lines of config.pbtxt
	Flags          []string        `json:"flags"`          // reasons to trust figures less
	Reasons        []string        `json:"reasons"`        // reasons of failures
	Phases         []search.Phase  `json:"phases"`         // phases of the campaign
	Chances        []string        `json:"chances"`        // probabilities that the limits hold, as text
	Again          []string        `json:"again"`          // how confirmed points were measured again, by their number of launches from 1
	Configurations []configuration `json:"configurations"` // configurations, the best first
	Pareto         []front         `json:"pareto"`         // the Pareto sets, that of three metrics first
	Latencies      []latencies     `json:"latencies"`      // distributions of the latency
	Services       []service       `json:"services"`       // times of batches
	Effects        []knobEffect    `json:"effects"`        // what each knob did, as explanation.knobs of result.json
	// trials in the order of the campaign. A trial has its time in seconds since the campaign's start,
	// configuration, load, phase, and the objective by its own windows, which is null if it failed
	Trials [][]any `json:"trials"`
	decided
}

// metric is a metric of which points have values.
type metric struct {
	Name         measure.Metric `json:"name"`          // the metric
	Label        string         `json:"label"`         // its name for people
	Unit         measure.Unit   `json:"unit"`          // its base unit
	HigherBetter bool           `json:"higher_better"` // higher values are better
	Interval     bool           `json:"interval"`      // points have an interval of it
}

// knob is a knob with the values that configurations give it.
type knob struct {
	Name   string         `json:"name"`   // name of the knob
	Values []search.Value `json:"values"` // its values
}

// configuration is a configuration with its points.
type configuration struct {
	Name    string `json:"name"`              // name of the configuration
	Title   string `json:"title"`             // description in a few words
	Default bool   `json:"default,omitempty"` // it is the default configuration
	Rank    int    `json:"rank,omitempty"`    // rank from 1
	Tie     int    `json:"tie,omitempty"`     // the first rank of its tied group
	Best    *int   `json:"best,omitempty"`    // index of the point that ranks it
	Missed  []int  `json:"missed,omitempty"`  // indices of the metrics whose limits it misses there
	// the objective as a multiple of the default's: value, lower and upper end of its interval; with
	// several metrics, how many times better it is
	Gain numerals `json:"gain,omitempty"`
	// for each knob the index of its value; −1: not set
	Settings []int `json:"settings"`
	// points, ascending by load. A point has its load; its state (1 confirmed, 2 unlikely to keep the
	// limits, 3 both, 0 neither); its values by metric; lower and upper end of each metric with an
	// interval; its numbers of windows, launches, requests and errors, and its mean batch; its chance;
	// and, if there are any, its flags
	Points [][]any `json:"points,omitempty"`
	// for each point its index in a standing; −1 if it takes no part
	Choices  []int    `json:"choices,omitempty"`
	Failures [][2]int `json:"failures,omitempty"` // failed trials: load and reason
	Config   []int    `json:"config"`             // lines of its config.pbtxt
}

// front is a Pareto set.
type front struct {
	Metrics []measure.Metric `json:"metrics"` // metrics of the set
	Points  [][2]int         `json:"points"`  // points of the set: configuration, and index of its point
}

// latencies is the distribution of the latency of a configuration under a load.
type latencies struct {
	Configuration int         `json:"configuration"` // the configuration
	Load          int         `json:"load"`          // the load
	Requests      int         `json:"requests"`      // number of requests
	Quantiles     [][2]figure `json:"quantiles"`     // share of the requests, 0 to 1, and the latency that it did not exceed
}

// service is the service curve of a configuration's engine process.
type service struct {
	Configuration int      `json:"configuration"`     // a configuration of the engine process
	Sizes         []int    `json:"sizes"`             // batch sizes
	Alone         numerals `json:"alone"`             // time of a batch by size, while the other instances are idle
	Crowded       numerals `json:"crowded,omitempty"` // time of a batch by size, while all instances are busy
}

// knobEffect compares the values of a knob with the chosen one.
type knobEffect struct {
	Knob   string       `json:"knob"`   // name of the knob
	Chosen search.Value `json:"chosen"` // its value in the answer
	Others []effect     `json:"others"` // its other values
}

// effect is the effect of another value of a knob.
type effect struct {
	Value  search.Value `json:"value"`            // the other value
	Basis  search.Basis `json:"basis"`            // how the effect is known; bound: the change is at most this
	Change numerals     `json:"change,omitempty"` // relative change of the objective: value, lower and upper end of its interval
	Misses string       `json:"misses,omitempty"` // constraint that is missed, if nothing with the value satisfies them
}

// figure is a number with five significant digits; null if it is unknown.
type figure float64

// MarshalJSON implements json.Marshaler.
func (f figure) MarshalJSON() ([]byte, error) { return f.appendTo(nil), nil }

func (f figure) appendTo(text []byte) []byte { return appendNumber(text, float64(f), 5) }

// exact is a number with enough digits to read the same value back; null if it is unknown.
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

// numerals are encoded together for speed: a page of ten thousand configurations has a million.
type numerals []numeral

// numeral is a figure or an exact.
type numeral interface{ appendTo(text []byte) []byte }

// MarshalJSON implements json.Marshaler.
func (list numerals) MarshalJSON() ([]byte, error) {
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

func figuresOf(e measure.Estimate) numerals {
	return numerals{figure(e.Value), figure(e.Lo), figure(e.Hi)}
}

// table assigns indices to values in the order of first use.
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
	names                 *table[string] // knob names
	loads                 *table[measure.Load]
	lines, flags, reasons *table[string]
	chances               *table[string]
	phases                *table[search.Phase]
	choices               map[string]int // indices in the verdict's choices, by cell
	configurations        map[string]int // indices by name
	failures              map[string][]analyze.Failure
}

func newDocument(p Page) document {
	r := p.Result
	b := builder{
		page: p, metrics: metricsOf(p), names: newTable[string](), loads: newTable[measure.Load](), lines: newTable[string](),
		flags: newTable[string](), reasons: newTable[string](), phases: newTable[search.Phase](),
		chances: newTable[string](), choices: map[string]int{}, configurations: map[string]int{}, failures: map[string][]analyze.Failure{},
	}
	for i, c := range r.Verdict.Choices {
		b.choices[cellName(c.Candidate, c.Load)] = i
	}
	for i, c := range r.Configs {
		b.configurations[c.Name] = i
	}
	for _, f := range r.Failures {
		b.failures[f.Name] = append(b.failures[f.Name], f)
	}
	d := document{
		Format: DataFormat, Model: r.Header.Model, Summary: p.Verdict.Summary, IsRecorded: r.Recorded != "", Objective: r.Goal.Objective.Terms,
		Constraints: slices.Concat([]search.Constraint{}, r.Goal.Constraints), Latency: r.Goal.Latency(),
		RankedBy: cmp.Or(r.Rank, spec.RankScore), TwoServers: r.Header.Finals != nil, Top: r.Top, Metrics: b.metrics, Configurations: make([]configuration, len(r.Configs)), Knobs: []knob{},
		decided: p.decided,
	}
	b.nameKnobs()
	for i, c := range r.Configs {
		d.Configurations[i] = b.configuration(i, c)
	}
	for i, name := range b.names.list {
		d.Knobs = append(d.Knobs, knob{name, b.knobs[i].list})
	}
	d.Pareto, d.Latencies, d.Services, d.Effects, d.Trials = b.pareto(), b.latencies(), b.services(), b.effects(), b.trials()
	d.Chances, d.Again = b.chances.list, again(r)
	d.Loads, d.Lines, d.Flags, d.Reasons, d.Phases = b.loads.list, b.lines.list, b.flags.list, b.reasons.list, b.phases.list
	return d
}

// again lists how confirmed points were measured again, by their number of launches from 1.
func again(r analyze.Result) []string {
	list := []string{}
	for _, c := range r.Configs {
		for _, p := range c.Points {
			for p.Confirmed && len(list) < p.Launches {
				list = append(list, figures.Again(r, len(list)+1))
			}
		}
	}
	return list
}

// metricsOf lists the metrics of points: those of the tables, and the goal's others.
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
		list = append(list, metric{m, p.Labels[m], info.Unit, info.HigherBetter, hasInterval})
	}
	return list
}

// nameKnobs assigns indices to the knobs that any configuration sets.
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
		Name: c.Name, Title: b.page.Titles[i], Default: c.Candidate.IsDefault(), Rank: c.Rank, Tie: b.tie(c),
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
		j.Gain = figuresOf(verdict.Words{Goal: b.page.Result.Goal}.Ratio(*c.Gain))
	}
	if c.Best != nil {
		for _, m := range c.Best.Misses {
			if n := slices.IndexFunc(b.metrics, func(o metric) bool { return o.Name == m.Constraint.Metric }); n >= 0 {
				j.Missed = append(j.Missed, n)
			}
		}
	}
	b.addPoints(&j, c)
	for _, f := range b.failures[c.Name] {
		j.Failures = append(j.Failures, [2]int{b.loads.of(f.Load), b.reasons.of(string(f.Stage) + ": " + f.Reason)})
	}
	return j
}

// addPoints enters a configuration's points, with their indices in the verdict's choices.
func (b *builder) addPoints(j *configuration, c analyze.Config) {
	takesPart := false
	for n, p := range c.Points {
		if c.Best != nil && p.Load == c.Best.Load {
			j.Best = &n
		}
		choice, isKnown := b.choices[cellName(c.Candidate, p.Load)]
		if !isKnown {
			choice = -1
		}
		takesPart = takesPart || isKnown
		j.Choices, j.Points = append(j.Choices, choice), append(j.Points, b.point(p, choice))
	}
	if !takesPart {
		j.Choices = nil
	}
}

// tie returns the first rank of the tied group of a configuration, or 0. Each member names the
// first of the other members, so the first rank is the smaller of that and its own.
func (b *builder) tie(c analyze.Config) int {
	if len(c.TiedWith) == 0 {
		return 0
	}
	if i, known := b.configurations[c.TiedWith[0]]; known {
		return min(c.Rank, b.page.Result.Configs[i].Rank)
	}
	return c.Rank
}

// pareto returns the result's Pareto sets.
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
	stateMisses    = 2 // it is unlikely to keep the limits
)

// point makes a row: load, state, values, intervals, counts, the probability that the limits hold,
// and flags if there are any.
func (b *builder) point(p analyze.Point, choice int) []any {
	state, chance := 0, chanceText(p)
	if p.Confirmed {
		state += stateConfirmed
	}
	misses := len(p.Misses) > 0
	if choice >= 0 {
		c := b.page.Result.Verdict.Choices[choice]
		misses = c.Holds < verdict.Likely
		if c.Holds == 0 {
			// chance: 0 also if it only refuses requests, with or without limits
			chance = verdict.Percent(0)
		}
	}
	if misses {
		state += stateMisses
	}
	values, intervals := b.figures(p.Sample)
	counts := numerals{exact(p.Windows), exact(p.Launches), exact(p.Requests), exact(p.Errors), figure(p.MeanBatch)}
	row := []any{b.loads.of(p.Load), state, values, intervals, counts, b.chances.of(chance)}
	if len(p.Flags) > 0 {
		flags := []int{}
		for _, f := range p.Flags {
			flags = append(flags, b.flags.of(f.Text()))
		}
		row = append(row, flags)
	}
	return row
}

// chanceText returns the probability that the limits hold at a point; "" without limits.
func chanceText(p analyze.Point) string {
	isUnknown := slices.ContainsFunc(p.Chances, func(c analyze.Chance) bool { return c.IsUnknown })
	switch {
	case len(p.Chances) == 0:
		return ""
	case isUnknown:
		return "unknown"
	}
	return verdict.Percent(p.Probability())
}

// figures returns a sample's values by metric, and lo and hi of those with an interval.
func (b *builder) figures(s analyze.Sample) (values, intervals numerals) {
	for _, m := range b.metrics {
		e, ok := s.Values[m.Name]
		if !ok {
			e = measure.Estimate{Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
		}
		values = append(values, figure(e.Value))
		if m.Interval {
			intervals = append(intervals, figure(e.Lo), figure(e.Hi))
		}
	}
	return values, intervals
}

// shares are the quantiles of a distribution that the page draws. They are denser in the tail.
var shares = [...]float64{0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.965, 0.98, 0.99,
	0.9925, 0.995, 0.9965, 0.998, 0.999, 0.9995, 0.9999, 0.99995, 0.99999}

// latencies returns the distributions of the explained configurations, as far into the tail as
// their requests allow.
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

// services returns the service curves of the explained configurations, each engine process once.
func (b *builder) services() []service {
	list := []service{}
	var drawn []*analyze.ServiceCurve
	for _, s := range b.page.Result.Explanation.Subjects {
		isSame := func(c *analyze.ServiceCurve) bool {
			return slices.Equal(c.Sizes, s.Curve.Sizes) && slices.Equal(c.Alone, s.Curve.Alone)
		}
		if s.Curve == nil || slices.ContainsFunc(drawn, isSame) {
			continue
		}
		drawn = append(drawn, s.Curve)
		j := service{Configuration: b.configurations[s.Name], Sizes: s.Curve.Sizes, Alone: numerals{}}
		for _, v := range s.Curve.Alone {
			j.Alone = append(j.Alone, figure(v))
		}
		for _, v := range s.Curve.Crowded {
			j.Crowded = append(j.Crowded, figure(v))
		}
		list = append(list, j)
	}
	return list
}

// trials makes rows: seconds since the campaign's start, configuration, load, phase, and the
// objective from the trial's own windows. The objective of a failed trial is null.
func (b *builder) trials() [][]any {
	list := [][]any{}
	for _, s := range b.page.Result.Course {
		value := figure(math.NaN())
		if s.Event.Measurement.Failure == nil {
			value = figure(objectiveAt(b.page.Result, s.Score))
		}
		t := s.Event.Trial
		list = append(list, []any{figure(s.Event.Elapsed.Seconds()), b.configurations[s.Name], b.loads.of(t.Load), b.phases.of(t.Phase), value})
	}
	return list
}
