// Package html writes report.html: an analyzed campaign as one page that needs nothing but itself. It lays out: what the
// report says in words comes from package report, the figures from the Result. The charts, the table and what depends on
// limits that a reader tries out are drawn by the page's own script from data that it carries. The same Page gives the same
// bytes. It measures nothing and ranks nothing.
package html

import (
	"embed"
	"io"

	"tuner/analyze"
	"tuner/internal/webpage"
	"tuner/measure"
)

// Page is what the page shows: a result, and the words for it.
type Page struct {
	Result   analyze.Result
	Verdict  Verdict
	Effort   string                    // what the result rests on
	View     []string                  // what was measured and compared, where it is not each configuration at its best on the bundled engine
	Labels   map[measure.Metric]string // short names of the metrics
	Titles   []string                  // what each of the result's configurations is, in a few words
	Config   string                    // the best configuration's config.pbtxt; "" where nothing satisfies the constraints
	Deploy   []string                  // commands that serve it from the page's folder; none where there is no repository
	Ranking  Section                   // the table, for readers without JavaScript
	Notes    []string                  // what one should know of the figures
	Why      []Section
	Accuracy Section // of the variants
	Failures []string
	Rejected []string // variants that were never measured
	LeftOut  []string // combinations that were not tried
	Steps    Section  // of `tuner run`; without rows where the campaign was run by itself
	Origin   []Fact   // what is needed to reproduce the result
}

// Verdict is the answer: "1.59 ×", "the default's throughput within p99 ≤ 50 ms", "95 % interval 1.57 to 1.60".
type Verdict struct {
	Figure, Claim, Certainty string
	Best                     string // the configuration, and whether it was confirmed
	Summary                  string // the whole in a sentence
}

// Section is a part of the report in sentences and a table, either of which may be missing.
type Section struct {
	Title string
	Lines []string
	Heads []string
	Cells [][]string
	Notes []string
}

// Fact is a line of the origin.
type Fact struct{ Name, Value string }

//go:embed assets
var assets embed.FS

// scripts are the parts of the page's script, behind those that all pages have, in their order.
var scripts = [...]string{"data.js", "words.js", "rank.js", "pareto.js", "chance.js", "marks.js", "charts.js", "effects.js", "table.js", "detail.js",
	"whatif.js", "page.js"}

// view is what the template is filled with.
type view struct {
	Page
	webpage.Parts
}

// Write writes the page.
func Write(w io.Writer, p Page) error {
	source := webpage.Source{Files: assets, Template: "page.html", Style: "page.css", Scripts: scripts[:]}
	return webpage.Write(w, source, newDocument(p), func(parts webpage.Parts) any { return view{p, parts} })
}
