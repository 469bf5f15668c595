package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/journal"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// What a YAML file, a model or an engine's log may say to do harm: HTML, links, code, an end of the line or of the comment, what steers a
// terminal, and what a spreadsheet computes.
const (
	hostileHTML    = "<script>alert(1)</script><img src=x onerror=alert(1)>"
	hostileLink    = "[click](javascript:alert(1))"
	hostileLines   = "x\n# heading\nname: \"other\"\n"
	hostileEscape  = "\x1b]0;owned\x07\x1b[2J\u202e"
	hostileFormula = "=HYPERLINK(\"http://example.com\")"
)

const evil = hostileHTML + hostileLink + "`code`|cell|\\" + hostileEscape + hostileLines

// hostile is a result that names everything so.
func hostile(t *testing.T) analyze.Result {
	t.Helper()
	profile := strings.Replace(analyzetest.Profile, "intra_op_threads: [1, 2]",
		"intra_op_threads: [1, 2]\n  parameters: {evil: [\"a\", \"b\"]}", 1)
	c := analyzetest.Candidate(2, 1, 16).With("parameters.evil", search.Value(evil))
	r := ranked(t, analyzetest.New(t, profile).Measure(search.Candidate{}, 8).Measure(c, 16).
		Fail(analyzetest.Candidate(1, 1, 4), 8, measure.StageStart, evil).End(evil, true).Claim(evil), analyze.Options{
		CSV: spec.CSVFiles{Inference: spec.CSVFile{Columns: []string{"model_name", "backend_parameter/evil", "backend_parameter/formula", "perf_throughput"}}}})
	for i := range r.Configs {
		if parameters := r.Configs[i].Deployed.GetParameters(); parameters["evil"] != nil {
			parameters["formula"] = parameters["evil"]
			parameters["formula"].StringValue = hostileFormula
		}
	}
	r.Header.Spec.Path, r.Header.Tool, r.Header.Fingerprint = evil, evil, evil
	r.Header.Models = []journal.ModelFile{{Precision: evil, Path: evil, SHA256: evil}}
	r.Header.Variants = []journal.Variant{{Precision: evil, Notes: []string{evil}, Rejected: map[string]string{evil: evil}, Kept: []journal.KeptNode{{Node: evil}}}}
	r.Folds = []search.Fold{{Reason: evil, Count: 1}}
	r.Reused = []analyze.Reused{{From: evil}}
	r.Assigned = map[string]string{"cpu": evil}
	return r
}

func written(t *testing.T, r analyze.Result, write func(io.Writer, analyze.Result) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHostileTextStaysTextInMarkdown(t *testing.T) {
	t.Parallel()
	recorded, elsewhere := hostile(t), hostile(t)
	recorded.Recorded = evil
	elsewhere.StageElsewhere = true
	elsewhere.Header.Server = &journal.ServerInfo{Mode: "remote", Where: evil, Name: evil, Version: evil}
	elsewhere.Header.Finals = elsewhere.Header.Server
	text := ""
	for _, r := range []analyze.Result{hostile(t), recorded, elsewhere} {
		text += written(t, r, func(w io.Writer, r analyze.Result) error { return WriteMarkdown(w, r, true) })
	}
	inCode := func(line string) string { // what stands in code is text whatever it is
		parts := strings.Split(strings.ReplaceAll(line, "\\`", ""), "`")
		if len(parts)%2 == 0 {
			t.Errorf("code does not end in its line: %s", line)
		}
		outside := ""
		for i := 0; i < len(parts); i += 2 {
			outside += parts[i]
		}
		return outside
	}
	if strings.ContainsAny(text, "\x1b\x07\u202e") {
		t.Errorf("characters that turn the direction of writing, or steer a terminal: %q", text)
	}
	for line := range strings.Lines(text) {
		outside := inCode(strings.TrimRight(line, "\n"))
		if strings.Contains(outside, "<") {
			t.Errorf("HTML: %s", line)
		}
		if strings.Contains(outside, "](javascript") {
			t.Errorf("a link: %s", line)
		}
		if strings.HasPrefix(line, "# heading") || strings.HasPrefix(line, "name:") {
			t.Errorf("text begins a line: %s", line)
		}
	}
}

func TestHostileTextCannotSteerATerminal(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(io.Writer, analyze.Result) error{"table": WriteTable, "explanation": WriteExplanation, "answer": WriteAnswer} {
		if text := written(t, hostile(t), write); strings.ContainsAny(text, "\x1b\x07\u202e") {
			t.Errorf("%s: control characters in %q", name, text)
		}
	}
}

func TestHostileTextIsNoFormula(t *testing.T) {
	t.Parallel()
	lines, err := csv.NewReader(strings.NewReader(written(t, hostile(t), WriteInferenceCSV))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lines[1][2], "'"+hostileFormula; got != want && lines[2][2] != want {
		t.Errorf("the cell is %q, want %q", got, want)
	}
	for _, cell := range []string{"=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1"} {
		if got := textCell(cell); got != "'"+cell {
			t.Errorf("%q is written as %q", cell, got)
		}
	}
	for _, cell := range []string{"", "minilm", "1=1"} {
		if got := textCell(cell); got != cell {
			t.Errorf("%q is written as %q", cell, got)
		}
	}
}

// Comments of the optimal configuration end where a line does.
func TestHostileTextStaysInComments(t *testing.T) {
	t.Parallel()
	r := hostile(t)
	text := written(t, r, WriteConfig)
	comments, _, _ := strings.Cut(text, "\n\n")
	if strings.ContainsAny(comments, "\x1b\u202e") {
		t.Errorf("the comments hold characters that hide text: %q", comments)
	}
	for line := range strings.Lines(comments) {
		if !strings.HasPrefix(line, "# ") {
			t.Errorf("a comment goes on as %q", line)
		}
	}
}

func TestHostileTextInJUnit(t *testing.T) {
	t.Parallel()
	if suites := readJUnit(t, hostile(t)); len(suites.Suites[0].Cases) != 2 {
		t.Errorf("%d cases", len(suites.Suites[0].Cases))
	}
}

// A journal may come from anywhere: its model's name is never a way out of the output folder.
func TestHostileModelName(t *testing.T) {
	t.Parallel()
	r := withModel(t, ranked(t, typical(t), analyze.Options{}))
	for _, name := range []string{"../evil", "a/b", `a\b`, ".", "..", "", ".hidden", "/etc"} {
		parent := t.TempDir()
		r.Header.Model = name
		_, err := WriteAll(filepath.Join(parent, "out"), r, withoutCharts())
		if refused := new(InputError); !errors.As(err, &refused) {
			t.Errorf("%q: error %v, want an InputError", name, err)
		}
		if entries, err := os.ReadDir(parent); err != nil || len(entries) != 0 {
			t.Errorf("%q: %v was written (%v)", name, entries, err)
		}
	}
}
