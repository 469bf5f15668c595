package runner

import (
	"bytes"
	"strings"
	"sync"
)

const (
	tailLines   = 20
	longestLine = 500 // bytes; the rest of a longer line is left out
)

// tail is a writer that keeps the last lines written to it.
type tail struct {
	mu      sync.Mutex
	lines   []string
	partial []byte // the line that has no end yet
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	for {
		line, rest, found := bytes.Cut(p, []byte("\n"))
		t.partial = append(t.partial, line[:min(len(line), longestLine-len(t.partial))]...)
		if !found {
			return n, nil
		}
		t.lines = append(t.lines, string(t.partial))
		t.lines = t.lines[max(0, len(t.lines)-tailLines):]
		t.partial, p = t.partial[:0], rest
	}
}

// String is the kept lines, with the one that has no end yet.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines
	if len(t.partial) > 0 {
		lines = append(lines[:len(lines):len(lines)], string(t.partial))
	}
	return strings.Join(lines, "\n")
}
