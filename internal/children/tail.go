package children

import (
	"bytes"
	"strings"
	"sync"
)

const (
	tailLines   = 20
	longestLine = 500 // bytes; the rest of a longer line is dropped
	crashLines  = 3   // lines of a crash report: its reason and place
)

// Tail is a writer that keeps the last lines of a child's output. When a Go program crashes, by a
// panic or since a library aborted it, hundreds of lines of stacks and registers follow the reason.
// Tail keeps only the first of these.
type Tail struct {
	mu      sync.Mutex
	lines   []string
	partial []byte // the line without an end so far
	crash   int    // lines since the first line of a crash report, inclusive; 0: no crash
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
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

func (t *Tail) add(line string) {
	if t.crash > 0 || beginsCrash(line) {
		if t.crash++; t.crash > crashLines {
			return
		}
	}
	t.lines = append(t.lines, line)
	t.lines = t.lines[max(0, len(t.lines)-tailLines):]
}

// beginsCrash recognises the first line that Go's runtime prints when it ends the process.
func beginsCrash(line string) bool {
	for _, prefix := range []string{"panic: ", "fatal error: ", "SIGABRT: ", "SIGSEGV: ", "SIGBUS: ", "SIGFPE: ", "SIGILL: "} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// String returns the kept lines and the line without an end.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines
	if len(t.partial) > 0 {
		lines = append(lines[:len(lines):len(lines)], string(t.partial))
	}
	return strings.Join(lines, "\n")
}
