package output

import (
	"embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/internal/webpage"
	"tuner/internal/words"
	"tuner/measure"
)

//go:embed assets
var assets embed.FS

// trendSource returns the parts of trend.html that other pages do not share.
func trendSource() webpage.Source {
	return webpage.Source{Files: assets, Template: "trend.html", Style: "trend.css", Scripts: []string{"trend.js"}}
}

// mostTrend is the largest number of gates on the page, the latest ones.
const mostTrend = 200

// trendPage is the data of the page's template.
type trendPage struct {
	webpage.Parts
	Name, Load string // of the model; of the measurement
	Headline   string
	Verdict    decide.Verdict
	Effort     string
	ByModel    string   // verdict on each of several models; "" for one
	Heads      []string // titles of this gate's table
	Cells      [][]string
	Notes      []string
	Metrics    []trendMetric
	Rows       []trendRow // the history, the latest gate first
	Older      int        // number of older gates that are left out
}

// trendData is the data of the page's script.
type trendData struct {
	Metrics []trendMetric `json:"metrics"` // metrics of the charts
	Gates   []trendGate   `json:"gates"`   // gates of the same name and load, the latest last
}

// trendMetric is a metric of the charts.
type trendMetric struct {
	Name         measure.Metric `json:"name"`          // the metric
	Unit         measure.Unit   `json:"unit"`          // its base unit
	HigherBetter bool           `json:"higher_better"` // higher values are better
}

// trendGate is a line of the history in which every metric has a verdict.
type trendGate struct {
	Number int    `json:"number"` // number among the comparable gates, from 1
	Label  string `json:"label"`  // the revision, shortened; "" if it is unknown
	gate.Record
}

// trendRow is a gate in the table of all gates.
type trendRow struct {
	Gate  trendGate
	Date  string
	Cells []trendCell // by metric
}

// trendCell is a metric's value, with its change or its interval; "" if unknown.
type trendCell struct {
	Value, Change string
	Verdict       decide.Verdict // "" without a value
}

// WriteTrend writes the history as a page for a browser. It has this gate, a chart of each metric
// over the gates with intervals, tolerances and limits, and a table of all gates.
func WriteTrend(w io.Writer, r Report) error {
	data := trendData{Metrics: r.trendMetrics()}
	var older int
	data.Gates, older = r.trendGates()
	page := trendPage{
		Name: r.Setup.Spec.Name, Load: r.Setup.LoadText(), Headline: r.headline(), Verdict: r.Outcome.Verdict, Effort: r.effort(), ByModel: r.byModel(),
		Heads: heads(), Cells: r.rows(), Notes: r.notes(), Metrics: data.Metrics, Older: older,
	}
	for _, g := range slices.Backward(data.Gates) {
		page.Rows = append(page.Rows, newTrendRow(g, data.Metrics))
	}
	return webpage.Write(w, trendSource(), data, func(parts webpage.Parts) any {
		page.Parts = parts
		return page
	})
}

// trendMetrics returns the metrics that the gate judges.
func (r Report) trendMetrics() []trendMetric {
	list := []trendMetric{}
	for _, m := range r.Setup.Spec.AllMetrics() {
		info, _ := m.Info()
		list = append(list, trendMetric{m, info.Unit, info.HigherBetter})
	}
	return list
}

// trendGates returns the latest comparable gates, and the number of older ones. Since users may
// edit a history by hand, invalid verdicts are dropped.
func (r Report) trendGates() (list []trendGate, older int) {
	history := r.related()
	older = max(0, len(history)-mostTrend)
	list = []trendGate{}
	for i, record := range history[older:] {
		record.Time = record.Time.UTC()
		record.Metrics = maps.Clone(record.Metrics)
		for m, f := range record.Metrics {
			f.Verdict = verdict(record.VerdictOn(m))
			record.Metrics[m] = f
		}
		record.Verdict = verdict(record.Verdict)
		list = append(list, trendGate{older + i + 1, label(record.Revision), record})
	}
	return list, older
}

// verdict returns v, or Inconclusive if v is not a valid verdict.
func verdict(v decide.Verdict) decide.Verdict {
	switch v {
	case decide.Pass, decide.Fail, decide.Inconclusive:
		return v
	}
	return decide.Inconclusive
}

// label shortens a revision: a commit to the letters that distinguish it, another name to the
// available length.
func label(revision string) string {
	const sha1, sha256, commit, most = 40, 64, 8, 16
	isCommit := len(revision) == sha1 || len(revision) == sha256
	if isCommit && strings.Trim(revision, "0123456789abcdef") == "" {
		return revision[:commit]
	}
	return words.Shorten(revision, most)
}

func newTrendRow(g trendGate, metrics []trendMetric) trendRow {
	row := trendRow{Gate: g, Date: g.Time.Format("2006-01-02 15:04")}
	for _, m := range metrics {
		cell := trendCell{Value: "–"}
		if f, ok := g.Metrics[m.Name]; ok {
			cell = newTrendCell(m.Name, f)
		}
		row.Cells = append(row.Cells, cell)
	}
	return row
}

func newTrendCell(m measure.Metric, f gate.RecordFigure) trendCell {
	cell := trendCell{Value: m.Format(f.Candidate), Verdict: f.Verdict}
	switch {
	case f.Change != nil && f.Lo != nil && f.Hi != nil:
		cell.Change = fmt.Sprintf("%s (%s to %s)", gate.Percent(*f.Change), gate.Percent(*f.Lo), gate.Percent(*f.Hi))
	case f.CandidateLo != nil && f.CandidateHi != nil:
		cell.Change = fmt.Sprintf("%s to %s", m.Format(*f.CandidateLo), m.Format(*f.CandidateHi))
	}
	return cell
}
