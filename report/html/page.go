// Package html writes report.html, which shows an analyzed campaign on one self-contained page.
// Words come from package figures, numbers from the Result. The program makes the decision for
// every limit at which the answer changes. So the page's script only looks answers up and draws.
// The package measures nothing, and the script ranks nothing.
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

// Page is the content of the page: a result, with the words for it.
type Page struct {
	Result  analyze.Result
	Verdict Verdict
	// Say describes a decision under other limits than the result's own.
	Say      func(search.Goal, verdict.Verdict) Verdict
	State    string   // state of the answer, in one or two words; "" if the view has none
	About    []string // model, machine and date of the measurement
	Trust    []Chip
	Loosened string // effect of the next step of a limit; "" without one
	Effort   string // basis of the result: trials and time
	// View: view and server, if not each configuration at its best load on the bundled engine
	View     []string
	Labels   map[measure.Metric]string // short names of the metrics
	Titles   []string                  // short descriptions of the result's configurations
	Config   string                    // the answer's config.pbtxt; "" if nothing satisfies the constraints
	Deploy   []string                  // commands that serve it from the page's folder; empty without a repository
	Ranking  Section                   // the table, for readers without JavaScript
	Notes    []string                  // notes on the figures
	Why      []Section
	Accuracy Section // figures of the variants
	Failures []string
	Rejected []string // variants that were never measured
	LeftOut  []string // combinations that were not tried
	Steps    Section  // of `tuner run`; without rows if the campaign was run by itself
	Origin   []Fact   // everything that is needed to reproduce the result

	decided decided
}

// Chip is one reason to trust or to doubt the answer.
type Chip struct {
	Text    string
	Hint    string // its meaning, and a remedy
	Link    string // the part of the page with details: "#origin"
	IsDoubt bool
}

// Verdict is the answer: "1.59 ×", "the default's throughput within p99 ≤ 50 ms".
type Verdict struct {
	Figure, Claim string
	Best          string   // the configuration, with a note if it was measured again
	Shares        []string // of several models, what each gets and does in it
	Summary       string   // the whole verdict in a sentence
	Open          string   // questions that the campaign leaves open; "" without any
}

// Section is a part of the report: sentences and a table. Either may be missing.
type Section struct {
	Title string
	Lines []string
	Heads []string
	Cells [][]string
	Notes []string
}

// Fact is a row of the origin.
type Fact struct{ Name, Value string }

//go:embed assets
var assets embed.FS

// scripts are the parts of the page's script in their order, after those that all pages have.
var scripts = [...]string{"data.js", "words.js", "answer.js", "marks.js", "charts.js", "effects.js", "table.js", "detail.js", "page.js"}

// view is the template's data.
type view struct {
	Page
	webpage.Parts
	Cards []Card // of the report's own answer
}

// Card is a column of the verdict.
type Card struct {
	Role
	Text string // reason why there is no choice
}

// writePage executes the template.
func writePage(w io.Writer, p Page) error {
	p.decided = newDecisions(p)
	source := webpage.Source{Files: assets, Template: "page.html", Style: "page.css", Scripts: scripts[:]}
	return webpage.Write(w, source, newDocument(p), func(parts webpage.Parts) any { return view{p, parts, p.decided.cards()} })
}

// Setup, Load and Figures return values of the card's choice.
func (c Card) Setup() string        { return c.Of.Setup }
func (c Card) Load() string         { return c.Of.Load }
func (c Card) Figures() [][3]string { return c.Of.Figures }

// The texts of cards without a choice.
const (
	noneRecommended = "No measured configuration keeps the limits with the required probability."
	noneAtTheEdge   = "No measured configuration is better and likely to keep the limits."
)

// cards returns the columns of the report's own answer: the recommended choice and the one at the
// edge, or the nearest.
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

// own returns the report's own answer; nil if nothing was decided.
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
