package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/pipeline/steps"
	"tuner/report/html"
	resultjson "tuner/report/json"
	"tuner/report/markdown"
	"tuner/report/reporttest"
	"tuner/report/result"
)

// All reports have the steps of `tuner run`. A campaign that was run by itself has none.
func TestSteps(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	write := func() (summary, jsonText, page string) {
		t.Helper()
		var m, j, h bytes.Buffer
		if err := errors.Join(markdown.Write(&m, r, false), resultjson.Write(&j, r), html.Write(&h, r, false)); err != nil {
			t.Fatal(err)
		}
		return m.String(), j.String(), h.String()
	}
	if markdown, text, page := write(); strings.Contains(markdown, "## Steps") || strings.Contains(text, `"steps"`) || strings.Contains(page, "Steps of the run") {
		t.Error("there are steps of a campaign that was run by itself")
	}
	r.Steps = steps.List{
		{Name: steps.Convert, State: steps.Skipped, Text: "m.onnx is\nfine | as it is"},
		{Name: steps.Repository, State: steps.OK, Text: "out/repository/m"},
		{Name: steps.Chart, State: steps.Failed, Text: "<b>no space</b>"},
	}
	markdown, text, page := write()
	for _, want := range []string{
		"\n## Steps\n\n| step | name | state |",
		"| 1 | convert | skipped | m.onnx is fine \\| as it is |",
		"| 6 | repository | ok | out/repository/m |",
		"| 2 | precision | not made |  |",
		"| 7 | chart | failed | &lt;b>no space&lt;/b> |",
	} {
		if !strings.Contains(markdown, want) {
			t.Errorf("%q is missing in\n%s", want, markdown)
		}
	}
	for _, want := range []string{"<h2>Steps of the run</h2>", "<td>6</td><td>repository</td><td>ok</td><td>out/repository/m</td>",
		"<td>7</td><td>chart</td><td>failed</td><td>&lt;b&gt;no space&lt;/b&gt;</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in the page", want)
		}
	}
	var d result.Result
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	want := []result.Step{
		{Step: steps.Convert, State: steps.Skipped, Text: "m.onnx is\nfine | as it is"},
		{Step: steps.Repository, State: steps.OK, Text: "out/repository/m"},
		{Step: steps.Chart, State: steps.Failed, Text: "<b>no space</b>"},
	}
	if diff := cmp.Diff(want, d.Steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	doc, err := os.ReadFile("../docs/reference/result-fields.md")
	if err != nil || !strings.Contains(string(doc), "| `steps` |") {
		t.Errorf("docs/reference/result-fields.md does not mention steps (%v)", err)
	}
}
