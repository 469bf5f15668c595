package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/profile/journal"
	"tuner/report"
	resultcsv "tuner/report/csv"
	"tuner/report/html"
	resultjson "tuner/report/json"
	"tuner/report/junit"
	"tuner/report/markdown"
	"tuner/report/text"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/secrets"
)

// sealed returns the text of a journal with valid checksums, since an attacker can compute them
// too.
func sealed(text []byte) []byte {
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	var record struct {
		Data struct {
			Spec struct{ Text, SHA256 string }
		}
	}
	if err := json.Unmarshal(line, &record); err == nil && record.Data.Spec.SHA256 != "" {
		sum := sha256.Sum256([]byte(record.Data.Spec.Text))
		line = bytes.Replace(line, []byte(record.Data.Spec.SHA256), []byte(hex.EncodeToString(sum[:])), 1)
	}
	return journal.Reseal(append(append(bytes.Clone(line), '\n'), rest...))
}

// FuzzAnalysis analyzes foreign journals and writes all formats. For every content it must end
// without a crash. Repeated reads must give the same result.
func FuzzAnalysis(f *testing.F) {
	dir := f.TempDir()
	analyzetest.New(f, analyzetest.Profile).Given(search.Candidate{}, 4, 1, 0).Given(analyzetest.Candidate(2, 1, 16), 8, 2, 0).
		Fail(analyzetest.Candidate(2, 2, 16), 16, measure.StageStart, "it did not start").End("over", false).WriteJournal(dir)
	for _, path := range []string{dir, "../testdata/journals/minilm", "../testdata/journals/guided", "../testdata/journals/format1"} {
		text, err := os.ReadFile(filepath.Join(path, journal.FileName))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, journal.FileName), sealed(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := analyze.Replay(dir)
		if err != nil {
			return
		}
		r, err := analyze.Analyze(c, analyze.Options{Top: 3})
		if err != nil {
			return
		}
		writers := []func(io.Writer, analyze.Result) error{text.WriteTable, resultjson.Write, resultcsv.WriteInference, resultcsv.WriteGPU, junit.Write, text.WriteExplanation, report.WriteConfig,
			func(w io.Writer, r analyze.Result) error { return markdown.Write(w, r, true) },
			func(w io.Writer, r analyze.Result) error { return html.Write(w, r, true) }}
		for _, write := range writers {
			if err := write(io.Discard, r); err != nil {
				t.Log(err) // some content cannot be written, and the error says so
			}
		}
		if _, err := spec.RecordedProfile("p.yaml", secrets.Without([]byte(c.Header.Spec.Text))); err != nil {
			t.Error(err)
		}
	})
}
