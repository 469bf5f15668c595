package spec

import (
	"errors"
	"os"
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

// Every YAML example in the documentation reads without a mistake.
func TestDocsExamples(t *testing.T) {
	t.Parallel()
	found := 0
	for _, page := range []string{"../README.md", "../docs/reference/profile.md", "../docs/reference/analyze.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for block := range strings.SplitSeq(string(text), "```yaml\n") {
			example, _, fenced := strings.Cut(block, "```")
			switch {
			case fenced && strings.HasPrefix(example, "model:"):
				_, err = ParseProfile(page, []byte(example))
			case fenced && strings.HasPrefix(example, "input:"):
				_, err = ParseAnalyze(page, []byte(example), allFormats())
			default:
				continue
			}
			found++
			if err != nil {
				t.Error(err)
			}
		}
	}
	if found < 3 {
		t.Errorf("found %d examples, expected one in each page at least", found)
	}
}
