package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/measure"
	"tuner/report/result"
	"tuner/steps"
)

// The steps of `tuner run` are in all reports; a campaign that was run by itself has none.
func TestSteps(t *testing.T) {
	t.Parallel()
	r := ranked(t, typical(t), analyze.Options{})
	write := func() (markdown, jsonText, page string) {
		t.Helper()
		var m, j, h bytes.Buffer
		if err := errors.Join(WriteMarkdown(&m, r, false), WriteJSON(&j, r), WriteHTML(&h, r, false)); err != nil {
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
	doc, err := os.ReadFile("../docs/reference/results.md")
	if err != nil || !strings.Contains(string(doc), "`steps[]`") {
		t.Errorf("docs/reference/results.md does not mention steps[] (%v)", err)
	}
}

// Of a run that ended before its campaign there is a report.md with the steps, and nothing else.
func TestWriteSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteSteps(dir, "net", steps.List{{Name: steps.Convert, State: steps.Failed, Text: "cannot export | net.pt"}}); err != nil {
		t.Fatal(err)
	}
	want := "# net: no result\n\nThe run ended before anything was measured.\n\n## Steps\n\n" +
		"| step | name | state | what was done, or why not |\n| --- | --- | --- | --- |\n| 1 | convert | failed | cannot export \\| net.pt |\n" +
		"| 2 | precision | not made |  |\n| 3 | accuracy check | not made |  |\n| 4 | configuration search | not made |  |\n" +
		"| 5 | optimized model | not made |  |\n| 6 | repository | not made |  |\n| 7 | chart | not made |  |\n"
	if text, err := os.ReadFile(filepath.Join(dir, markdownName)); err != nil || string(text) != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v; want %s alone", files, err, markdownName)
	}
}

// The answer says what was found, how sure that is, what it assumes, and what became of the outputs.
func TestAnswer(t *testing.T) {
	t.Parallel()
	check := func(name string, r analyze.Result, want ...string) {
		t.Helper()
		var b bytes.Buffer
		if err := WriteAnswer(&b, r); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q is missing in\n%s", name, w, text)
			}
		}
		if strings.Contains(strings.TrimSpace(b.String()), "\n\n") {
			t.Errorf("%s: more than a paragraph:\n%s", name, &b)
		}
	}
	check("found", ranked(t, typical(t), analyze.Options{}), "Recommended: config_4 (2 instances × 1 thread, batch 16) at concurrency 16: ",
		"p99 ≤ 50 ms kept: >99 %", "1.59 × the default's throughput [", "Assumed: requests of input_ids [32] (as given)", "; measured again on 2 fresh processes.")
	check("int8", ranked(t, withVariants(t), analyze.Options{}), "int8 on cpu has cosine 0.9931 on 240 rows of your data (limit ")
	busy := ranked(t, typical(t), analyze.Options{})
	busy.Withheld = analyze.Withheld{Others: measure.Others{Mean: 0.12, Most: 0.3}}
	check("busy", busy, "others used 12 % of the CPU time (30 % in the worst window): the figures are of the mean.")
	check("infeasible", ranked(t, typical(t), analyze.Options{Goal: tight()}), "Unfinished: nothing that was measured keeps the limits", "Nearest: default at ")
	check("nothing", ranked(t, complete(t), analyze.Options{Goal: tight()}), "Nothing satisfies p99 ≤ 3 ms. Nearest: default at ")
	check("interrupted", ranked(t, typical(t).End("interrupted by the user", true), analyze.Options{}), "Unfinished: ", "; interrupted;")
	if err := WriteAnswer(failing{}, ranked(t, typical(t), analyze.Options{})); !errors.Is(err, errFull) {
		t.Errorf("error is %v, want %v", err, errFull)
	}
}
