package spec

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
	"tuner/model/modelconfig"
	"tuner/search"
	"tuner/spec/document"
)

// seeds adds the runnable examples, and a few texts with rare forms.
func seeds(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob("../configs/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{"", "~", "- a", "model: a\nspace: &x {a: *x}", "model: a\nspace: {max_batch_size: {min: 1, max: 64, scale: pow2}}",
		"model: a\nspace: {? [1, 2] : 3, parameters: {a: [b]}, optimization: {cuda: {graphs: [true]}}}", "<<: {model: a}", "\t", "!!binary a: b",
		"input: a\nformats: [csv]\nconstraints: {latency_p99: {max: 1e999}}", "model: a\nload: {concurrency: auto, inputs: {shape: {x: []}}}"} {
		f.Add([]byte(text))
	}
}

// checkErrors fails unless err is a list of mistakes that all have a file, a line and a problem.
func checkErrors(t *testing.T, err error) {
	t.Helper()
	var es document.Errors
	if !errors.As(err, &es) || len(es) == 0 {
		t.Fatalf("error is %T: %v", err, err)
	}
	for _, e := range es {
		if e.File != "f.yaml" || e.Line < 1 || e.Problem == "" {
			t.Fatalf("incomplete mistake %+v", e)
		}
	}
}

func FuzzParseProfile(f *testing.F) {
	seeds(f)
	facts := search.Facts{Cores: 4, Batching: true}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		p, err := ParseProfile("f.yaml", text)
		if err != nil {
			checkErrors(t, err)
			return
		}
		again, err := ParseProfile(p.Path, p.Text)
		if diff := cmp.Diff(p, again); err != nil || diff != "" {
			t.Fatalf("a profile does not read the same from its own text: %v %s", err, diff)
		}
		isNone := p.Knobs != nil && len(p.Knobs) == 0 // space: none
		if s := p.Settings(facts); p.Model.Path == "" || p.Output == "" || modelconfig.ServableName(p.Name) != p.Name ||
			len(s.Space.Load.Levels) == 0 || len(s.Space.Knobs) == 0 && !isNone || len(s.Goal.Objective.Terms) == 0 {
			t.Fatalf("profile without its defaults: %+v", p)
		}
	})
}

func FuzzParseAnalyze(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		a, err := ParseAnalyze("f.yaml", text, allFormats())
		if err != nil {
			checkErrors(t, err)
			return
		}
		if a.Input == "" || a.Output == "" || a.Top < 1 || len(a.Formats) == 0 {
			t.Fatalf("analysis without its defaults: %+v", a)
		}
	})
}
