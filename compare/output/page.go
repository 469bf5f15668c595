package output

import (
	"embed"
	"io"

	"tuner/compare"
	"tuner/internal/webpage"
)

//go:embed assets
var assets embed.FS

// comparePage is the data of the page's template.
type comparePage struct {
	webpage.Parts
	Runs  []compare.Run
	Pairs []pairPart
}

// pairPart is a pair with what the page derives from it.
type pairPart struct {
	compare.Pair
	Summary     string
	CommonTexts []string
	Tables      []table
	Legend      []string
}

// WriteHTML writes the comparison as one page for a browser.
func WriteHTML(w io.Writer, c compare.Comparison) error {
	page := comparePage{Runs: c.Runs}
	for _, p := range c.Pairs {
		page.Pairs = append(page.Pairs, pairPart{p, summary(p), commonTexts(p), tables(p), legend(c, p)})
	}
	return webpage.Write(w, source("compare.html"), struct{}{}, func(parts webpage.Parts) any {
		page.Parts = parts
		return page
	})
}

func source(template string) webpage.Source {
	return webpage.Source{Files: assets, Template: template, Style: "compare.css", Scripts: []string{"compare.js"}}
}

// Entry is a run in a folder tree.
type Entry struct {
	compare.Run
	Link string // path of the run's page from the index, with slashes; "" without one
}

// IndexMark stands in every index page, so that no other page is overwritten.
const IndexMark = `<meta name="generator" content="tuner compare">`

// indexPage is the data of the index's template.
type indexPage struct {
	webpage.Parts
	Title string
	Runs  []Entry
}

// WriteIndex writes a page that lists the runs of a folder tree, with links to their reports.
func WriteIndex(w io.Writer, title string, list []Entry) error {
	return webpage.Write(w, source("index.html"), struct{}{}, func(parts webpage.Parts) any {
		return indexPage{parts, title, list}
	})
}
