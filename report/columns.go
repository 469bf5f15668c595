package report

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

// unknown stands for a figure that there is not.
const unknown = "–"

// column is one column of the ranking, in the terminal and in Markdown.
type column struct {
	header string
	cell   func(analyze.Config) string
	varies bool // left out when every row has the same text, which is then said beside the table
	right  bool // right-aligned
}

// columns lists the ranking's columns in their order. They are narrow, so that a row with all of them fits a terminal; the goal's own
// metrics stand beside the usual ones.
func columns(r analyze.Result) []column {
	list := []column{
		{header: "#", cell: func(c analyze.Config) string { return rankCell(r, c) }, right: true},
		{header: "Config", cell: func(c analyze.Config) string { return nameCell(r, c) }},
		{header: "Inst × thr", cell: func(c analyze.Config) string { return threadsCell(c.Setup) }, right: true},
		{header: "Batch", cell: batchCell, right: true},
		{header: "Delay", cell: func(c analyze.Config) string { return delayCell(c.Setup.QueueDelay) }, right: true, varies: true},
		{header: "Provider", cell: func(c analyze.Config) string { return c.Setup.Provider }, varies: true},
		{header: "Precision", cell: func(c analyze.Config) string { return c.Setup.Precision }, varies: true},
		{header: loadHeader(r), cell: loadCell, right: true},
		{header: "infer/s", cell: throughputCell, right: true},
		{header: "p99 ms", cell: valueCell(measure.LatencyP99, msCell), right: true},
		{header: "RSS MB", cell: valueCell(measure.Memory, megabytesCell), right: true},
	}
	if r.Rank == spec.RankTop3Mean {
		list = append(list, column{header: fmt.Sprintf("mean of %d", mostLoads(r)), cell: topMeanCell, right: true})
	}
	for _, m := range r.Goal.Metrics() {
		if m != measure.Throughput && m != measure.LatencyP99 && m != measure.Memory {
			list = append(list, metricColumn(m))
		}
	}
	return append(list, column{header: "Gain", cell: func(c analyze.Config) string { return gainCell(r, c) }, right: true}, column{header: "OK", cell: func(c analyze.Config) string { return satisfiesCell(r, c) }})
}

// mostLoads is how many loads the means are of that configurations are ranked by; three where none has one.
func mostLoads(r analyze.Result) int {
	most := 0
	for _, c := range r.Configs {
		most = max(most, c.MeanOf)
	}
	return cmp.Or(most, 3)
}

// topMeanCell shows the mean of the highest throughputs, where a configuration is ranked by that.
func topMeanCell(c analyze.Config) string {
	if !c.Satisfies() || math.IsInf(c.Score.Value, 0) {
		return unknown
	}
	mean, half := math.Exp(c.Score.Value), math.Exp(c.Score.Value)*(c.Score.Hi-c.Score.Value)
	return plusMinus(measure.Estimate{Value: mean, Lo: mean - half, Hi: mean + half})
}

// metricColumn is the column of a metric that has none as a rule.
func metricColumn(m measure.Metric) column {
	info, _ := m.Info()
	header, format := verdict.Label(m), plainCell
	switch info.Unit {
	case measure.Seconds:
		name := strings.TrimPrefix(strings.TrimPrefix(string(m), "latency_"), "compute_")
		if m == measure.LatencyAvg {
			name = "mean"
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

// rows picks the configurations to show: the Top best and the default.
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

// grid is the ranking as text, with the columns that vary, and what is the same in all rows.
type grid struct {
	columns []column
	cells   [][]string
	common  string // "cpu, fp32"
}

// newGrid makes the ranking's text.
func newGrid(r analyze.Result) grid {
	shown := rows(r)
	g := grid{cells: make([][]string, len(shown))}
	var common []string
	for _, col := range columns(r) {
		texts := make([]string, len(shown))
		same := true
		for i, c := range shown {
			texts[i] = oneLine(col.cell(c))
			same = same && texts[i] == texts[0]
		}
		if col.varies && same {
			if len(texts) > 0 && texts[0] != "" {
				common = append(common, strings.ToLower(col.header)+" "+texts[0])
			}
			continue
		}
		g.columns = append(g.columns, col)
		for i := range texts {
			g.cells[i] = append(g.cells[i], texts[i])
		}
	}
	g.common = strings.Join(common, ", ")
	return g
}

// heads are the columns' heads for a terminal.
func (g grid) heads() []terminal.Column {
	heads := make([]terminal.Column, len(g.columns))
	for i, c := range g.columns {
		heads[i] = terminal.Column{Title: c.header, Right: c.right}
	}
	return heads
}

func (g grid) headers() []string {
	headers := make([]string, len(g.columns))
	for i, c := range g.columns {
		headers[i] = c.header
	}
	return headers
}

// nameCell is a configuration's name; the default has a star.
func nameCell(r analyze.Result, c analyze.Config) string {
	if c.Candidate.IsDefault() {
		return "default *"
	}
	return shortName(r, c)
}

// oneLine keeps text from breaking a row.
func oneLine(text string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(text)
}

// bestMark stands before the rank of the best.
const bestMark = "»"

// rankCell gives tied configurations the rank of the first of them.
func rankCell(r analyze.Result, c analyze.Config) string {
	switch {
	case c.Rank == 0:
		return unknown
	case c.Rank == 1 && c.Satisfies():
		return bestMark + "1"
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
		return unknown
	case s.IntraOpThreads < 0:
		return strconv.Itoa(s.Instances)
	case s.IntraOpThreads == 0:
		return fmt.Sprintf("%d × all", s.Instances)
	}
	return fmt.Sprintf("%d × %d", s.Instances, s.IntraOpThreads)
}

// batchCell is unknown for a configuration that nothing is known of, none for a model that does not batch.
func batchCell(c analyze.Config) string {
	if c.Setup.Instances == 0 {
		return unknown
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

// isRate reports whether the campaign's loads are request rates.
func isRate(r analyze.Result) bool {
	for _, c := range r.Configs {
		for _, p := range c.Points {
			return p.Load.RequestRate > 0
		}
	}
	return false
}

func loadHeader(r analyze.Result) string {
	if isRate(r) {
		return "Rate"
	}
	return "Load"
}

func loadCell(c analyze.Config) string {
	if c.Best == nil {
		return unknown
	}
	return strconv.FormatFloat(c.Best.Load.Level(), 'g', 5, 64)
}

// valueCell shows a metric at the configuration's best load.
func valueCell(m measure.Metric, format func(float64) string) func(analyze.Config) string {
	return func(c analyze.Config) string {
		if c.Best == nil {
			return unknown
		}
		e, ok := c.Best.Values[m]
		if !ok {
			return unknown
		}
		return format(e.Value) + missMark(*c.Best, m)
	}
}

// beyondLimit stands behind a figure that misses a constraint.
const beyondLimit = "!"

func missMark(p analyze.Point, m measure.Metric) string {
	if slices.ContainsFunc(p.Misses, func(miss search.Miss) bool { return miss.Constraint.Metric == m }) {
		return beyondLimit
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
		return unknown
	}
	e, ok := c.Best.Values[measure.Throughput]
	if !ok {
		return unknown
	}
	return plusMinus(e) + missMark(*c.Best, measure.Throughput)
}

// plusMinus prints a value with half of its interval, where it has one, from a thousand on without decimals.
func plusMinus(e measure.Estimate) string {
	format := "%.1f"
	if e.Value >= 1000 {
		format = "%.0f"
	}
	text := fmt.Sprintf(format, e.Value)
	if e.Lo < e.Hi {
		text += fmt.Sprintf(" ±"+format, (e.Hi-e.Lo)/2)
	}
	return text
}

// gainCell prints a gain as the ratio of the objective's values, with half of its interval: "1.59 × ±0.13".
func gainCell(r analyze.Result, c analyze.Config) string {
	switch {
	case c.Gain == nil:
		return unknown
	case c.Candidate.IsDefault():
		return "1 ×"
	}
	ratio := verdict.Words{Goal: r.Goal}.Ratio(*c.Gain)
	text := fmt.Sprintf("%.2f ×", ratio.Value)
	if ratio.Lo < ratio.Hi {
		text += fmt.Sprintf(" ±%.2f", (ratio.Hi-ratio.Lo)/2)
	}
	return text
}

// hasFailed reports whether a trial of a configuration failed.
func hasFailed(r analyze.Result, c analyze.Config) bool {
	return slices.ContainsFunc(r.Failures, func(f analyze.Failure) bool { return f.Name == c.Name })
}

// The words of the column OK, and what stands behind the figures that were confirmed.
const (
	failedWord    = "failed"
	missesWord    = "no"
	confirmedMark = "✓"
	unknownMark   = "?" // too few requests tell a limit
)

// satisfiesCell is the probability that the constraints hold. What was not tried has not failed.
func satisfiesCell(r analyze.Result, c analyze.Config) string {
	switch {
	case c.Best == nil && (len(c.Points) > 0 || !hasFailed(r, c)): // not measured where configurations are compared, or not at all
		return unknown
	case c.Best == nil:
		return failedWord
	case !c.Satisfies():
		return missesWord
	}
	text := "yes"
	if x, known := choiceOf(r, c); known && len(x.Limits) > 0 && r.Recorded == "" {
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
