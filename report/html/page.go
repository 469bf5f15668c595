// Package html writes report.html: an analyzed campaign as one page that needs nothing but itself. It lays out: what the
// report says in words comes from package report, the figures from the Result. The charts, the table and what depends on
// limits that a reader tries out are drawn by the page's own script from data that it carries. The same Page gives the same
// bytes. It measures nothing and ranks nothing.
package html

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"tuner/analyze"
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

// scripts are the parts of the page's script, in their order.
var scripts = [...]string{"format.js", "data.js", "rank.js", "pareto.js", "chance.js", "plot.js", "marks.js", "charts.js", "effects.js", "table.js",
	"detail.js", "whatif.js", "page.js"}

// view is what the template is filled with.
type view struct {
	Page
	Policy string // of the content, see policy
	Style  template.CSS
	Script template.JS
	Data   template.JS
}

// Write writes the page.
func Write(w io.Writer, p Page) error {
	v := view{Page: p}
	if err := v.load(); err != nil {
		return fmt.Errorf("cannot write HTML: %w", err)
	}
	t, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return fmt.Errorf("cannot write HTML: %w", err)
	}
	if err := t.Execute(w, v); err != nil {
		return fmt.Errorf("cannot write HTML: %w", err)
	}
	return nil
}

// load fills in style, script and data. In the data every <, > and & is escaped, as package json does, so that no text in it
// can end the element that it stands in.
func (v *view) load() error {
	style, err := assets.ReadFile("assets/page.css")
	if err != nil {
		return err
	}
	var script strings.Builder
	script.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range scripts {
		part, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		script.Write(part)
	}
	script.WriteString("})();\n")
	document, err := newDocument(v.Page)
	if err != nil {
		return err
	}
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	v.Style, v.Script, v.Data = template.CSS(style), template.JS(script.String()), template.JS(data)
	v.Policy = policy(string(style), script.String())
	return nil
}

// policy is a Content Security Policy that lets the page's own style and script run, by their digests, and forbids all else:
// other scripts, and every request over a network.
func policy(style, script string) string {
	digest := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return fmt.Sprintf("default-src 'none'; img-src data:; style-src %s; script-src %s; base-uri 'none'; form-action 'none'", digest(style), digest(script))
}
