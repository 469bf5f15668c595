package floors

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// root is the module's folder.
const root = "../.."

// Every test that docs/reference names as a proof exists.
func TestDocsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	defined := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, text := range texts(t, "*_test.go") {
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			defined[m[1]] = true
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "reference", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if !defined[m[1]] {
				t.Errorf("%s names %s: there is no such test", filepath.Base(page), m[1])
			}
		}
	}
}
