package target

import (
	"bytes"
	"strings"
	"sync"
)

const (
	tailLines   = 20
	longestLine = 500 // bytes; the rest of a longer line is left out
	crashLines  = 3   // of the report of a crash: what it was, and where
)

// tail is a writer that keeps the last lines written to it. When a Go program crashes, by a panic
// or because a library aborted it, hundreds of lines of stacks and registers follow the one that
// says why: of these only the first are kept.
type tail struct {
	mu      sync.Mutex
	lines   []string
	partial []byte // the line that has no end yet
	crash   int    // lines since the report of a crash began, with its first; 0: none
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
		t.add(string(t.partial))
		t.partial, p = t.partial[:0], rest
	}
}

func (t *tail) add(line string) {
	if t.crash > 0 || beginsCrash(line) {
		if t.crash++; t.crash > crashLines {
			return
		}
	}
	t.lines = append(t.lines, line)
	t.lines = t.lines[max(0, len(t.lines)-tailLines):]
}

// beginsCrash recognises the first line of what Go's runtime prints when it ends the process.
func beginsCrash(line string) bool {
	for _, prefix := range []string{"panic: ", "fatal error: ", "SIGABRT: ", "SIGSEGV: ", "SIGBUS: ", "SIGFPE: ", "SIGILL: "} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
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
