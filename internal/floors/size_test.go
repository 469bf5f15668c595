package floors

import (
	"bytes"
	"path/filepath"
	"testing"
)

// mostLines is the number of lines that a package may have, without tests and generated code. A
// newcomer reads a package of this size in a day. Beyond it there are two nouns, so split it.
const mostLines = 3000

// No package is larger than mostLines, comments included.
func TestPackagesStaySmall(t *testing.T) {
	t.Parallel()
	lines := map[string]int{}
	for file, text := range product(t) {
		lines[filepath.Dir(file)] += bytes.Count(text, []byte("\n"))
	}
	for folder, n := range lines {
		if n > mostLines {
			t.Errorf("%s has %d lines: more than %d", folder, n, mostLines)
		}
	}
}
