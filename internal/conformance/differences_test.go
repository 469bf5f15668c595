package conformance

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDifferencesAreFewAndReal(t *testing.T) {
	t.Parallel()
	if len(Differences) > MaxDifferences {
		t.Errorf("%d differences are more than %d", len(Differences), MaxDifferences)
	}
	names := caseNames(t)
	for _, d := range Differences {
		for _, pattern := range d.Cases {
			found := slices.ContainsFunc(names, func(name string) bool {
				ok, err := path.Match(pattern, name)
				return ok && err == nil
			})
			if !found {
				t.Errorf("difference %s: no case is called %q", d.ID, pattern)
			}
		}
	}
}

func TestDifferencesAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range Differences {
		if line := "| " + d.ID + " | " + d.Reason + " |\n"; !strings.Contains(string(text), line) {
			t.Errorf("docs/conformance.md lacks the line\n%s", line)
		}
	}
}

// caseNames are the names of all requests and loads.
func caseNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, mode := range []string{"explicit", "none"} {
		cases, err := ReadCases(filepath.Join("testdata", "requests", mode))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			if slices.Contains(names, c.Name) {
				t.Errorf("two cases are called %q", c.Name)
			}
			names = append(names, c.Name)
		}
	}
	models, err := ReadModels(filepath.Join("testdata", "repositories", "load.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range models {
		for _, c := range LoadCases(m) {
			names = append(names, c.Name)
		}
		names = append(names, indexCase(m))
	}
	return names
}
