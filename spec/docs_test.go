package spec

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// allowedAt returns the fields that the parser names when it meets an unknown one.
func allowedAt(t *testing.T, parse func(string) error, text string) []string {
	t.Helper()
	var es Errors
	if !errors.As(parse(text), &es) {
		t.Fatalf("%s: no mistake found", text)
	}
	for _, e := range es {
		if strings.HasSuffix(e.Path, "zzzzzz") {
			return strings.Split(e.Allowed, ", ")
		}
	}
	t.Fatalf("%s: the unknown field is not among %v", text, es)
	return nil
}

// The pages in docs/reference name every field that the parsers take.
func TestDocsNameEveryField(t *testing.T) {
	t.Parallel()
	parseProfile := func(text string) error { _, err := ParseProfile("p.yaml", []byte(text)); return err }
	parseAnalyze := func(text string) error { _, err := ParseAnalyze("a.yaml", []byte(text), allFormats()); return err }
	check := func(page, prefix string, fields []string) {
		text, err := os.ReadFile("../docs/reference/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			if !strings.Contains(string(text), "`"+prefix+f) && f != "ModelConfig fields" {
				t.Errorf("%s does not describe %q", page, prefix+f)
			}
		}
	}
	check("profile.md", "", allowedAt(t, parseProfile, "zzzzzz: 1"))
	check("profile.md", "runner.", allowedAt(t, parseProfile, "runner: {zzzzzz: 1}"))
	check("profile.md", "search.", allowedAt(t, parseProfile, "search: {zzzzzz: 1}"))
	check("profile.md", "load.", allowedAt(t, parseProfile, "load: {zzzzzz: 1}"))
	check("profile.md", "load.inputs.", allowedAt(t, parseProfile, "load: {inputs: {zzzzzz: 1}}"))
	check("profile.md", "accuracy.", allowedAt(t, parseProfile, "accuracy: {zzzzzz: 1}"))
	check("profile.md", "", allowedAt(t, parseProfile, "space: {zzzzzz: 1}"))
	check("profile.md", "", allowedAt(t, parseProfile, "weights: {zzzzzz: 1}"))
	check("analyze.md", "", allowedAt(t, parseAnalyze, "zzzzzz: 1"))
}

// Every YAML example for users reads without a mistake. Its first field tells which file it is.
func TestDocsExamples(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := []struct {
		first string
		parse func(page, text string) error
	}{
		{"model:", func(page, text string) error { _, err := ParseProfile(page, []byte(text)); return err }},
		{"input:", func(page, text string) error { _, err := ParseAnalyze(page, []byte(text), allFormats()); return err }},
		{"baseline:", func(page, text string) error { _, err := ParseGate(page, []byte(text)); return err }},
	}
	found := map[string]int{}
	for _, page := range append(pages, "../README.md") {
		if filepath.Base(page) == "ortsweep.md" { // TestSweepDocs reads its examples
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for block := range strings.SplitSeq(string(text), "```yaml\n") {
			example, _, _ := strings.Cut(block, "```")
			for _, kind := range kinds {
				if !strings.HasPrefix(example, kind.first) {
					continue
				}
				found[kind.first]++
				if err := kind.parse(page, example); err != nil {
					t.Error(err)
				}
			}
		}
	}
	for _, kind := range kinds {
		if found[kind.first] == 0 {
			t.Errorf("no example begins with %q", kind.first)
		}
	}
}
