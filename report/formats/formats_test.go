package formats_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/report"
	"tuner/report/formats"
	"tuner/report/formats/testdata/tally"
	"tuner/report/reporttest"
	"tuner/spec"
)

// A new format needs a package and a row in the list. Then analyze.yaml, --output, its help and the
// output folder support it. docs/how-to/add-a-report-format.md describes these steps.
func TestAddAFormat(t *testing.T) {
	t.Parallel()
	list := append(formats.All(), report.Row{Format: tally.Format{}, Stdout: "tally", About: "how many satisfy"})
	dir := t.TempDir()
	journals := filepath.Join(reporttest.Root(t), "testdata/journals/minilm")
	a, err := spec.ParseAnalyze("analyze.yaml", []byte("input: "+journals+"\noutput: "+dir+"\nformats: [tally]\n"), list.Words())
	if err != nil {
		t.Fatal(err)
	}
	campaign, err := analyze.Replay(a.Input)
	if err != nil {
		t.Fatal(err)
	}
	r, err := analyze.Analyze(campaign, analyze.Options{Top: a.Top})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second pass replaces the files of the first
		written, err := list.WriteAll(dir, r, a.Formats)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{filepath.Join(dir, "report.md"), filepath.Join(dir, "result.json"), filepath.Join(dir, "tally.txt")}
		if diff := cmp.Diff(want, written); diff != "" {
			t.Errorf("written (-want +got):\n%s", diff)
		}
		for _, path := range want[:2] { // this leaves half of a run's results
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "tally.txt"))
	if err != nil || !strings.Contains(string(text), " of "+strconv.Itoa(len(r.Configs))+". ") {
		t.Errorf("tally.txt is %q, %v", text, err)
	}
	var out bytes.Buffer
	if err := list.Print(&out, "tally", r); err != nil || out.String() != string(text) {
		t.Errorf("--output tally prints %q, %v; want %q", out.String(), err, text)
	}
	if help := list.StdoutHelp(); !strings.HasSuffix(help, " or tally (how many satisfy)") {
		t.Errorf("the help of --output says %q", help)
	}
	if err := formats.All().Print(&out, "tally", r); err == nil || !strings.Contains(err.Error(), "text, csv, markdown, json") {
		t.Errorf("without the row: error %v", err)
	}
}

// The documentation has the format names of analyze.yaml and --output.
func TestWordsAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join(reporttest.Root(t), "docs/reference/analyze-fields.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range formats.All().Words() {
		if !strings.Contains(string(doc), "`"+word+"`") {
			t.Errorf("docs/reference/analyze-fields.md does not mention the format `%s`", word)
		}
	}
}

// No two formats have the same name or file.
func TestNamesAndFilesAreDistinct(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	names, files := map[string]bool{}, map[string]bool{}
	for _, row := range formats.All() {
		if names[row.Name()] {
			t.Errorf("two formats are named %q", row.Name())
		}
		names[row.Name()] = true
		for _, f := range row.Files(r, report.Output{}) {
			if files[f.Path] {
				t.Errorf("two formats write %q", f.Path)
			}
			files[f.Path] = true
		}
	}
}
