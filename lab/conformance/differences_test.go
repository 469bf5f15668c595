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
	recorded, err := readGolden(differencesFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range Differences {
		for _, pattern := range d.Cases {
			found := false
			for name := range recorded {
				ok, err := path.Match(pattern, name)
				found = found || ok && err == nil
			}
			if !found {
				t.Errorf("difference %s: no case that differs is called %q", d.ID, pattern)
			}
		}
	}
	names := caseNames(t)
	for name := range recorded {
		if id := knownDifference(name); id == "" || !slices.Contains(names, name) {
			t.Errorf("%s: no difference is about %q, or there is no such case", differencesFile, name)
		}
	}
}

func TestKnownDifference(t *testing.T) {
	t.Parallel()
	check := func(name, want string) {
		t.Helper()
		if id := knownDifference(name); id != want {
			t.Errorf("%s: %q, want %q", name, id, want)
		}
	}
	check("06-errors-json/nesting of 200", "nesting")
	check("05-infer-types/uint8, too large", "numbers")
	check("01-server/live, plain", "")
}

func TestDifferencesAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range Differences {
		if line := "| " + d.ID + " | " + d.Reason + " |\n"; !strings.Contains(string(text), line) {
			t.Errorf("docs/reference/conformance.md lacks the line\n%s", line)
		}
	}
}

// caseNames returns the names of all requests and loads.
func caseNames(t *testing.T) []string {
	t.Helper()
	var names []string
	modes, err := os.ReadDir(filepath.Join("testdata", "requests"))
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range modes {
		for _, c := range readCases(t, mode.Name()) {
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
