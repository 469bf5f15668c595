package floors

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mostLines is the number of lines that a package may have, without tests and generated code. A
// newcomer reads a package of this size in a day. Beyond it there are two nouns, so split it.
const mostLines = 3000

// No package is larger than mostLines, comments included.
func TestPackagesStaySmall(t *testing.T) {
	t.Parallel()
	lines := map[string]int{}
	for _, file := range tracked(t, "*.go") {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") || strings.HasPrefix(file, "lab/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue // deleted but not committed
		}
		if err != nil {
			t.Fatal(err)
		}
		lines[filepath.Dir(file)] += bytes.Count(text, []byte("\n"))
	}
	for folder, n := range lines {
		if n > mostLines {
			t.Errorf("%s has %d lines: more than %d", folder, n, mostLines)
		}
	}
}
