package figures

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
	"tuner/spec"
)

// Unknown stands for an unknown figure.
const Unknown = "–"

// column is one column of the ranking, in the terminal and in Markdown.
type column struct {
	header string
	cell   func(analyze.Config) string
	// varies: left out if every row has the same text, which then stands beside the table
	varies bool
	right  bool // right-aligned
}

// columns lists the columns of the ranking, with those of the goal's own metrics. They are narrow,
// so a row with all of them fits a terminal.
func columns(r analyze.Result) []column {
	if len(r.Models) > 0 {
		return columnsOfSeveral(r)
	}
	list := []column{
		{header: "#", cell: func(c analyze.Config) string { return rankCell(r, c) }, right: true},
		{header: "Config", cell: func(c analyze.Config) string { return nameCell(r, c) }},
	}
	if r.IsPipeline() {
		list = append(list, stageColumns(r)...)
	} else {
		list = append(list, setupColumns()...)
	}
	list = append(list, []column{
		{header: loadHeader(r), cell: loadCell, right: true},
		{header: "infer/s", cell: throughputCell, right: true},
		{header: "p99 ms", cell: valueCell(measure.LatencyP99, msCell), right: true},
		{header: "RSS MB", cell: valueCell(measure.Memory, megabytesCell), right: true},
	}...)
	if r.Rank == spec.RankTop3Mean {
		list = append(list, column{header: fmt.Sprintf("mean of %d", mostLoads(r)), cell: topMeanCell, right: true})
	}
	for _, m := range r.Goal.Metrics() {
		if m != measure.Throughput && m != measure.LatencyP99 && m != measure.Memory {
			list = append(list, metricColumn(m))
		}
	}
	return append(list, column{header: "Gain", cell: func(c analyze.Config) string { return GainCell(r, c) }, right: true}, column{header: "OK", cell: func(c analyze.Config) string { return satisfiesCell(r, c) }})
}

// setupColumns lists the columns of one model's configuration.
func setupColumns() []column {
	return []column{
		{header: "Inst × thr", cell: func(c analyze.Config) string { return threadsCell(c.Setup) }, right: true},
		{header: "Batch", cell: BatchCell, right: true},
		{header: "Delay", cell: func(c analyze.Config) string { return delayCell(c.Setup.QueueDelay) }, right: true, varies: true},
		{header: "Provider", cell: func(c analyze.Config) string { return c.Setup.Provider }, varies: true},
		{header: "Precision", cell: func(c analyze.Config) string { return c.Setup.Precision }, varies: true},
	}
}

// mostLoads returns the largest number of loads in a mean that ranks configurations; 3 if there is
// no mean.
func mostLoads(r analyze.Result) int {
	most := 0
	for _, c := range r.Configs {
		most = max(most, c.MeanOf)
	}
	return cmp.Or(most, 3)
}

// topMeanCell shows the mean of the highest throughputs of a configuration.
func topMeanCell(c analyze.Config) string {
	if !c.Satisfies() || math.IsInf(c.Score.Value, 0) {
		return Unknown
	}
	mean, half := math.Exp(c.Score.Value), math.Exp(c.Score.Value)*(c.Score.Hi-c.Score.Value)
	return plusMinus(measure.Estimate{Value: mean, Lo: mean - half, Hi: mean + half})
}

// metricColumn returns the column of a metric that only some goals have.
func metricColumn(m measure.Metric) column {
	info, _ := m.Info()
	header, format := verdict.Label(m), plainCell
	switch info.Unit {
	case measure.Seconds:
		model, of := m.Split()
		name := strings.TrimPrefix(strings.TrimPrefix(string(of), "latency_"), "compute_")
		if of == measure.LatencyAvg {
			name = "mean"
		}
		if model != "" {
			name = model + " " + name
		}
		header, format = name+" ms", msCell
	case measure.Bytes:
		header, format = "GPU MB", megabytesCell
	case measure.Cores:
		header = "cores"
	case measure.Share:
		header, format = "GPU %", func(share float64) string { return plainCell(100 * share) }
	case measure.Watts:
		header = "GPU W"
	case measure.Joules:
		header = "J/infer"
	case measure.PerMillion:
		header = "cost/M"
	}
	return column{header: header, cell: valueCell(m, format), right: true}
}

// plainCell prints a number with three significant digits.
func plainCell(x float64) string { return fmt.Sprintf("%.3g", x) }

// rows selects the configurations to show: the Top best and the default.
func rows(r analyze.Result) []analyze.Config {
	var shown []analyze.Config
	top := r.Top
	for _, c := range r.Configs {
		switch {
		case c.Candidate.IsDefault():
			shown = append(shown, c)
		case r.Top == 0 || top > 0:
			shown = append(shown, c)
			top--
		}
	}
	return shown
}

// Ranking is the table of configurations as text. It has the columns that vary, and the settings
// that all rows share.
type Ranking struct {
	Heads  []terminal.Column
	Cells  [][]string
	Common string // "cpu, fp32"
}

// NewRanking makes the table.
func NewRanking(r analyze.Result) Ranking {
	shown := rows(r)
	g := Ranking{Cells: make([][]string, len(shown))}
	var common []string
	for _, col := range columns(r) {
		texts := make([]string, len(shown))
		same := true
		for i, c := range shown {
			texts[i] = OneLine(col.cell(c))
			same = same && texts[i] == texts[0]
		}
		if col.varies && same {
			if len(texts) > 0 && texts[0] != "" {
				common = append(common, strings.ToLower(col.header)+" "+texts[0])
			}
			continue
		}
		g.Heads = append(g.Heads, terminal.Column{Title: col.header, Right: col.right})
		for i := range texts {
			g.Cells[i] = append(g.Cells[i], texts[i])
		}
	}
	g.Common = strings.Join(common, ", ")
	return g
}

// Titles returns the titles of a table's columns.
func Titles(heads []terminal.Column) []string {
	titles := make([]string, len(heads))
	for i, h := range heads {
		titles[i] = h.Title
	}
	return titles
}

// nameCell returns a configuration's name. The default has a star.
func nameCell(r analyze.Result, c analyze.Config) string {
	if c.Candidate.IsDefault() {
		return "default *"
	}
	return ShortName(r, c)
}

// OneLine replaces line breaks, so that a text stays in its row.
func OneLine(text string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(text)
}

// BestMark stands before the rank of the best.
const BestMark = "»"

// rankCell returns the rank. Tied configurations have the rank of the first of them.
func rankCell(r analyze.Result, c analyze.Config) string {
	switch {
	case c.Rank == 0:
		return Unknown
	case c.Rank == 1 && c.Satisfies():
		return BestMark + "1"
	case len(c.TiedWith) == 0:
		return strconv.Itoa(c.Rank)
	}
	first := c.Rank
	for _, other := range r.Configs {
		if slices.Contains(c.TiedWith, other.Name) {
			first = min(first, other.Rank)
		}
	}
	return "=" + strconv.Itoa(first)
}

func threadsCell(s analyze.Setup) string {
	switch {
	case s.Instances == 0:
		return Unknown
	case s.IntraOpThreads < 0:
		return strconv.Itoa(s.Instances)
	case s.IntraOpThreads == 0:
		return fmt.Sprintf("%d × all", s.Instances)
	}
	return fmt.Sprintf("%d × %d", s.Instances, s.IntraOpThreads)
}

// BatchCell returns the largest batch. It is Unknown if the setup is unknown, and "none" for a
// model that does not batch.
func BatchCell(c analyze.Config) string {
	if c.Setup.Instances == 0 || c.Setup.MaxBatchSize < 0 {
		return Unknown
	}
	if c.Setup.MaxBatchSize == 0 {
		return "none"
	}
	return strconv.Itoa(c.Setup.MaxBatchSize)
}

func delayCell(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	return measure.QueueTime.Format(d.Seconds())
}

// MixOf returns the traffic of several models at scale 1; "" for one model, and without a measurement.
func MixOf(r analyze.Result) measure.Mix {
	for _, c := range r.Configs {
		for _, p := range c.Points {
			return p.Load.Mix
		}
	}
	return ""
}

// IsRate reports whether the campaign's loads are request rates.
func IsRate(r analyze.Result) bool {
	for _, c := range r.Configs {
		for _, p := range c.Points {
			return p.Load.RequestRate > 0
		}
	}
	return false
}

func loadHeader(r analyze.Result) string {
	switch {
	case len(r.Models) > 0:
		return "Scale"
	case IsRate(r):
		return "Rate"
	}
	return "Load"
}

func loadCell(c analyze.Config) string {
	if c.Best == nil {
		return Unknown
	}
	return strconv.FormatFloat(c.Best.Load.Level(), 'g', 5, 64)
}

// valueCell shows a metric at the configuration's best load.
func valueCell(m measure.Metric, format func(float64) string) func(analyze.Config) string {
	return func(c analyze.Config) string {
		if c.Best == nil {
			return Unknown
		}
		e, ok := c.Best.Values[m]
		if !ok {
			return Unknown
		}
		return format(e.Value) + missMark(*c.Best, m)
	}
}

// BeyondLimit stands behind a figure that misses a constraint.
const BeyondLimit = "!"

func missMark(p analyze.Point, m measure.Metric) string {
	if slices.ContainsFunc(p.Misses, func(miss search.Miss) bool { return miss.Constraint.Metric == m }) {
		return BeyondLimit
	}
	return ""
}

// msCell prints seconds as milliseconds without the unit.
func msCell(seconds float64) string {
	switch {
	case seconds < 1e-3:
		return fmt.Sprintf("%.3f", seconds*1e3)
	case seconds < 10e-3:
		return fmt.Sprintf("%.2f", seconds*1e3)
	}
	return fmt.Sprintf("%.1f", seconds*1e3)
}

func megabytesCell(bytes float64) string { return fmt.Sprintf("%.0f", bytes/1e6) }

func throughputCell(c analyze.Config) string {
	if c.Best == nil {
		return Unknown
	}
	e, ok := c.Best.Values[measure.Throughput]
	if !ok {
		return Unknown
	}
	return plusMinus(e) + missMark(*c.Best, measure.Throughput)
}

// plusMinus prints a throughput with half of its interval. From 1000 on there are no decimals.
func plusMinus(e measure.Estimate) string {
	usual := 1
	if e.Value >= 1000 {
		usual = 0
	}
	format := fmt.Sprintf("%%.%df", measure.ThroughputDecimals(e.Value, usual))
	text := fmt.Sprintf(format, e.Value)
	if e.Lo < e.Hi {
		text += fmt.Sprintf(" ±"+format, e.Half())
	}
	return text
}

// GainCell prints a gain as the ratio of the objective's values, with half of its interval: "1.59 ×
// ±0.13".
func GainCell(r analyze.Result, c analyze.Config) string {
	switch {
	case c.Gain == nil:
		return Unknown
	case c.Candidate.IsDefault():
		return "1 ×"
	}
	ratio := verdict.Words{Goal: r.Goal}.Ratio(*c.Gain)
	text := fmt.Sprintf("%.2f ×", ratio.Value)
	if ratio.Lo < ratio.Hi {
		text += fmt.Sprintf(" ±%.2f", ratio.Half())
	}
	return text
}

// hasFailed reports whether a trial of a configuration failed.
func hasFailed(r analyze.Result, c analyze.Config) bool {
	return slices.ContainsFunc(r.Failures, func(f analyze.Failure) bool { return f.Name == c.Name })
}

// The words and marks of the column OK.
const (
	FailedWord    = "failed"
	MissesWord    = "no"
	confirmedMark = "✓"
	unknownMark   = "?" // too few requests for a limit
)

// satisfiesCell returns the probability that the constraints hold. A configuration without a trial
// is unknown, not failed.
func satisfiesCell(r analyze.Result, c analyze.Config) string {
	switch {
	// not measured at all, or not at the load of the comparison
	case c.Best == nil && (len(c.Points) > 0 || !hasFailed(r, c)):
		return Unknown
	case c.Best == nil:
		return FailedWord
	case !c.Satisfies():
		return MissesWord
	}
	text := "yes"
	if x, known := ChoiceOf(r, c); known && len(x.Limits) > 0 && r.Recorded == "" {
		text = verdict.Percent(x.Holds)
		if x.IsUnknown() {
			text += unknownMark
		}
	}
	if c.Best.Confirmed {
		text += " " + confirmedMark
	}
	return text
}
