package report_test

import (
	"bytes"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/profile/journal"
	"tuner/report/figures"
	"tuner/report/html"
	resultjson "tuner/report/json"
	"tuner/report/junit"
	"tuner/report/markdown"
	"tuner/report/reporttest"
	"tuner/report/text"
)

// Every output has the request shape, and its source.
func TestRequestShapesStandEverywhere(t *testing.T) {
	t.Parallel()
	profile := strings.Replace(analyzetest.Profile, "inputs: {shape: {input_ids: [32]}}", "inputs: {shape: {input_ids: [32]}, examples: {input_ids: a text of 32 tokens}}", 1)
	r := reporttest.Ranked(t, analyzetest.New(t, profile).Measure(analyzetest.Candidate(2, 1, 4), 1, 2).End("done", false), analyze.Options{})
	r.Requests = append(r.Requests, analyze.RequestShape{Input: "sr", Dims: []int64{1}, Source: analyze.ShapeOfModel},
		analyze.RequestShape{Input: "x", Dims: []int64{3, 224, 224}, Source: analyze.ShapeGiven})
	r.Header.Requests = &journal.RequestRows{Name: "rows.npz", SHA256: "d", Rows: 7}
	r.Requests = append(r.Requests, analyze.RequestShape{Input: "mask", Dims: []int64{8}, Source: analyze.ShapeOfData})
	const want = "input_ids [32]: a text of 32 tokens (an example: give yours, since the figures depend on it), x [3 224 224] (as given), mask [8] (7 rows of rows.npz), sr [1] (fixed by the model)"
	unescape := strings.NewReplacer(`\_`, "_", `]\:`, "]:") // of Markdown
	for name, write := range map[string]func(*bytes.Buffer) error{
		"terminal":    func(b *bytes.Buffer) error { return text.WriteAnswer(b, r) },
		"table":       func(b *bytes.Buffer) error { return text.WriteTable(b, r) },
		"report.md":   func(b *bytes.Buffer) error { return markdown.Write(b, r, false) },
		"report.html": func(b *bytes.Buffer) error { return html.Write(b, r, false) },
		"junit.xml":   func(b *bytes.Buffer) error { return junit.Write(b, r) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if text := unescape.Replace(strings.Join(strings.Fields(b.String()), " ")); !strings.Contains(text, want) {
			t.Errorf("%s does not say %q", name, want)
		}
	}
	var b bytes.Buffer
	if err := resultjson.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(b.String()), ""); !strings.Contains(text, `{"input":"input_ids","shape":[32],"source":"example","reason":"atextof32tokens"}`) {
		t.Error("result.json does not say that the shape is an example, and why")
	}
}

// A reason stands once, after the last of the shapes that have it in turn. Shapes of earlier versions
// have none.
func TestReasonsOfShapes(t *testing.T) {
	t.Parallel()
	shape := func(input string, reason string) analyze.RequestShape {
		return analyze.RequestShape{Input: input, Dims: []int64{8}, Source: analyze.ShapeExample, Reason: reason}
	}
	check := func(want string, shapes ...analyze.RequestShape) {
		t.Helper()
		if got := figures.RequestsText(analyze.Result{Requests: shapes}); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
	const many = " (examples: give yours, since the figures depend on them)"
	check("a [8]: one, b [8]: two"+many, shape("a", "one"), shape("b", "two"))
	check("a [8], b [8]: one, c [8]: two"+many, shape("a", "one"), shape("b", "one"), shape("c", "two"))
	check("a [8], b [8]"+many, shape("a", ""), shape("b", ""))
	check("a [8], b [8]: two"+many, shape("a", ""), shape("b", "two"))
	check("a [8] (an example: give yours, since the figures depend on it)", shape("a", ""))
	check("")
}
