package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/measure"
	"tuner/steps"
)

// The steps of `tuner run` are in both reports; a campaign that was run by itself has none.
func TestSteps(t *testing.T) {
	t.Parallel()
	r := result(t, typical(t), analyze.Options{})
	write := func() (markdown, jsonText string) {
		t.Helper()
		var m, j bytes.Buffer
		if err := errors.Join(WriteMarkdown(&m, r, false), WriteJSON(&j, r)); err != nil {
			t.Fatal(err)
		}
		return m.String(), j.String()
	}
	if markdown, text := write(); strings.Contains(markdown, "## Steps") || strings.Contains(text, `"steps"`) {
		t.Error("there are steps of a campaign that was run by itself")
	}
	r.Steps = steps.List{
		{Name: steps.Convert, State: steps.Skipped, Text: "m.onnx is\nfine | as it is"},
		{Name: steps.Repository, State: steps.OK, Text: "out/repository/m"},
	}
	markdown, text := write()
	for _, want := range []string{
		"\n## Steps\n\n| step | name | state |",
		"| 1 | convert | skipped | m.onnx is fine \\| as it is |",
		"| 6 | repository | ok | out/repository/m |",
	} {
		if !strings.Contains(markdown, want) {
			t.Errorf("%q is missing in\n%s", want, markdown)
		}
	}
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	want := []jsonStep{{steps.Convert, steps.Skipped, "m.onnx is\nfine | as it is"}, {steps.Repository, steps.OK, "out/repository/m"}}
	if diff := cmp.Diff(want, d.Steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	doc, err := os.ReadFile("../docs/formats/results.md")
	if err != nil || !strings.Contains(string(doc), "`steps[]`") {
		t.Errorf("docs/formats/results.md does not mention steps[] (%v)", err)
	}
}

// The answer is one paragraph that says what was found, how sure that is, and what became of the outputs.
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
	check("found", result(t, typical(t), analyze.Options{}), "× the default's throughput [", "within p99 ≤ 50 ms", "Best: minilm_config_",
		"Confirmed on 2 fresh engine launches.", "Measured with requests of input_ids [32].")
	check("int8", result(t, withVariants(t), analyze.Options{}), "Accuracy of int8 on cpu: cosine 0.9931", "compared on 240 rows of sentences.npz")
	doubtful := result(t, typical(t), analyze.Options{})
	doubtful.Configs[0].Best.Flags = []measure.Flag{measure.FlagErrors}
	check("doubtful", doubtful, "Less certain: "+measure.FlagErrors.Text()+".")
	check("infeasible", result(t, typical(t), analyze.Options{Goal: tight()}), "Nothing satisfies p99 ≤ 3 ms. The nearest is minilm_config_")
	check("interrupted", result(t, typical(t).End("interrupted by the user", true), analyze.Options{}), "More was to come: interrupted by the user.")
	if err := WriteAnswer(failing{}, result(t, typical(t), analyze.Options{})); !errors.Is(err, errFull) {
		t.Errorf("error is %v, want %v", err, errFull)
	}
}
