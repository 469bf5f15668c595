//go:build conformance

package conformance

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/lab/peers"
	"tuner/measure"
	"tuner/report/html"
	"tuner/spec"
)

// TestReport opens report.html in a real browser, from disk. testdata/report.mjs has the checks.
// TUNER_PICTURES names a folder for screenshots.
func TestReport(t *testing.T) {
	for _, journal := range []string{"minilm", "guided"} {
		t.Run(journal, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "journals", journal, "journal.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "journal.jsonl"), text)
			write(t, filepath.Join(dir, "analyze.yaml"), []byte("input: .\nformats: [html]\n"))
			runTool(t, dir, environment(t, "TUNER_BINARY"), "analyze", "-f", "analyze.yaml")
			browse(t, dir, "ordinary", journal)
		})
	}
	t.Run("hostile names", func(t *testing.T) {
		t.Parallel()
		const hostile = `</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>'"<!--`
		r := analyzetest.Large(t, 3)
		r.Header.Model = hostile
		for i := range r.Configs {
			r.Configs[i].Name = hostile + r.Configs[i].Name
			if c := r.Configs[i].Candidate; !c.IsDefault() {
				r.Configs[i].Candidate = c.With(hostile, hostile)
			}
		}
		for i := range r.Explanation.Subjects {
			r.Explanation.Subjects[i].Name = hostile + r.Explanation.Subjects[i].Name
		}
		for _, f := range r.Fronts {
			for i := range f.Points {
				f.Points[i].Name = hostile + f.Points[i].Name
			}
		}
		browse(t, pageOf(t, r), "hostile", "hostile")
	})
	t.Run("an import without the default", func(t *testing.T) {
		t.Parallel()
		r := analyzetest.Large(t, 3)
		r.Configs = slices.DeleteFunc(r.Configs, func(c analyze.Config) bool { return c.Candidate.IsDefault() })
		for i := range r.Configs {
			r.Configs[i].Gain = nil
		}
		r.Recorded, r.Explanation = "another program", analyze.Explanation{}
		for m, e := range r.Configs[0].Points[0].Values { // intervals as wide as those of an import
			r.Configs[0].Points[0].Values[m] = measure.Estimate{Value: e.Value, Lo: -e.Value, Hi: 3 * e.Value}
		}
		browse(t, pageOf(t, r), "baseless", "baseless")
	})
	t.Run("the mean of three", func(t *testing.T) {
		t.Parallel()
		r, err := analyze.Analyze(mixed(t, analyzetest.Profile), analyze.Options{Rank: spec.RankTop3Mean})
		if err != nil {
			t.Fatal(err)
		}
		browse(t, pageOf(t, r), "undecided", "the-mean-of-three")
	})
	t.Run("10000 configurations", func(t *testing.T) {
		t.Parallel()
		browse(t, pageOf(t, analyzetest.Large(t, 10_000)), "large", "large")
	})
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// pageOf writes the page of a result into a new folder.
func pageOf(t *testing.T, r analyze.Result) string {
	t.Helper()
	dir := t.TempDir()
	var b bytes.Buffer
	if err := html.Write(&b, r, true); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "report.html"), b.Bytes())
	return dir
}

// browse checks the page of a folder, as an ordinary, a ranked, a hostile, a baseless, an undecided
// or a large one.
func browse(t *testing.T, dir, kind, name string) {
	t.Helper()
	inBrowser(t, "report.mjs", dir, kind, name)
}

// inBrowser runs a script of testdata, which opens a page in a real browser.
func inBrowser(t *testing.T, script string, args ...string) {
	t.Helper()
	installed, err := peers.Dir()
	if err != nil {
		t.Fatal(err)
	}
	browser := filepath.Join(installed, "browser")
	if _, err := os.Stat(filepath.Join(browser, "chromium")); err != nil {
		t.Fatalf("no browser: %v; run lab/scripts/browser.sh %s", err, installed)
	}
	t.Log(runTool(t, "", "node", append([]string{filepath.Join("testdata", script), browser}, args...)...))
}
