package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every YAML example for users is valid. Its first field shows which file it is.
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
