// Package html writes report.html: an analyzed campaign as one page that needs nothing but itself.
// Words come from package figures, numbers from the Result. The program decides for every limit at
// which the answer turns, so the page's own script looks answers up and draws. It measures nothing,
// and no script ranks.
package html

import (
	"embed"
	"io"

	"tuner/analyze"
	"tuner/internal/webpage"
	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
)

// Page is what the page shows: a result, and the words for it.
type Page struct {
	Result  analyze.Result
	Verdict Verdict
	// Say puts a decision under other limits than the result's own into words.
	Say      func(search.Goal, verdict.Verdict) Verdict
	State    string   // of the answer, in a word or two; "" where the view has none
	About    []string // what was measured, on which machine, when
	Trust    []Chip
	Loosened string                    // what the next step of a limit would bring; "" where that is nothing
	Effort   string                    // what the result rests on
	View     []string                  // what was measured and compared, where it is not each configuration at its best on the bundled engine
	Labels   map[measure.Metric]string // short names of the metrics
	Titles   []string                  // what each of the result's configurations is, in a few words
	Config   string                    // the answer's config.pbtxt; "" where nothing satisfies the constraints
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

	decided decided
}

// Chip is one reason to trust the answer, or to doubt it.
type Chip struct {
	Text    string
	Hint    string // what it means, and what to do
	Link    string // the part of the page that has more: "#origin"
	IsDoubt bool
}

// Verdict is the answer: "1.59 ×", "the default's throughput within p99 ≤ 50 ms".
type Verdict struct {
	Figure, Claim string
	Best          string // the configuration, and whether it was measured again
	Summary       string // the whole in a sentence
	Open          string // what the campaign leaves open; "" where that is nothing
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
var scripts = [...]string{"data.js", "words.js", "answer.js", "marks.js", "charts.js", "effects.js", "table.js", "detail.js", "page.js"}

// view is what the template is filled with.
type view struct {
	Page
	webpage.Parts
	Cards []Card // of the report's own answer
}

// Card is a column of the verdict.
type Card struct {
	Role
	Text string // instead of a choice: why there is none
}

// writePage lays the page out.
func writePage(w io.Writer, p Page) error {
	p.decided = newDecisions(p)
	source := webpage.Source{Files: assets, Template: "page.html", Style: "page.css", Scripts: scripts[:]}
	return webpage.Write(w, source, newDocument(p), func(parts webpage.Parts) any { return view{p, parts, p.decided.cards()} })
}

// Setup, Load and Figures are those of the card's choice.
func (c Card) Setup() string        { return c.Of.Setup }
func (c Card) Load() string         { return c.Of.Load }
func (c Card) Figures() [][3]string { return c.Of.Figures }

// What stands in the place of a choice where there is none.
const (
	noneRecommended = "Nothing that was measured keeps the limits as surely as asked."
	noneAtTheEdge   = "Nothing that was measured is better and likely to keep the limits."
)

// cards are the columns of the report's own answer: what is recommended and what is at the edge; or
// what is nearest.
func (d decided) cards() []Card {
	own := d.own()
	if own == nil || len(own.Roles) == 0 {
		return nil
	}
	find := func(as, title, text string) Card {
		for _, n := range own.Roles {
			if d.Roles[n].As == as {
				return Card{Role: d.Roles[n]}
			}
		}
		return Card{Role: Role{As: as, Title: title}, Text: text}
	}
	if nearest := find("nearest", "", ""); nearest.Of != nil {
		return []Card{nearest}
	}
	return []Card{find("recommended", "Recommended", noneRecommended), find("edge", "At the edge", noneAtTheEdge)}
}

// own is the report's own answer; nil where nothing was decided.
func (d decided) own() *answerData {
	for _, row := range d.Rows {
		for _, p := range row.Places {
			if p.Own {
				return &d.Answers[p.Answer]
			}
		}
	}
	return nil
}
