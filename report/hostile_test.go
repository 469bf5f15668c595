package report_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/report"
	"tuner/report/formats"
	"tuner/report/reporttest"
)

// Comments of the optimal configuration end at line breaks.
func TestHostileTextStaysInComments(t *testing.T) {
	t.Parallel()
	r := reporttest.Hostile(t)
	text := reporttest.Written(t, r, report.WriteConfig)
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

// A journal may come from an untrusted source. Its model name must not lead out of the output
// folder.
func TestHostileModelName(t *testing.T) {
	t.Parallel()
	r := reporttest.WithModel(t, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}))
	for _, name := range []string{"../evil", "a/b", `a\b`, ".", "..", "", ".hidden", "/etc"} {
		parent := t.TempDir()
		r.Header.Model = name
		_, err := formats.All().WriteAll(filepath.Join(parent, "out"), r, withoutCharts())
		if refused := new(report.InputError); !errors.As(err, &refused) {
			t.Errorf("%q: error %v, want an InputError", name, err)
		}
		if entries, err := os.ReadDir(parent); err != nil || len(entries) != 0 {
			t.Errorf("%q: %v was written (%v)", name, entries, err)
		}
	}
}
