package children

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

const (
	tailLines   = 20
	longestLine = 500 // bytes; the middle of a longer line is dropped
	crashLines  = 3   // lines of a crash report: its reason and place
)

// gap stands for the middle of a line that is too long.
const gap = " [...] "

// Tail is a writer that keeps the last lines of a child's output. As on a terminal, text after a
// carriage return replaces the line, so that a progress bar is one line.
type Tail struct {
	// IsGo says that the child is a Go program. When it crashes, by a panic or since a library
	// aborted it, hundreds of lines of stacks and registers follow the reason. Tail keeps only the
	// first of these.
	IsGo bool

	mu       sync.Mutex
	lines    []string
	partial  []byte // the line without an end so far, without its middle
	isCut    bool   // the middle of partial is missing
	returned bool   // a carriage return follows partial
	crash    int    // lines since the first line of a crash report, inclusive; 0: no crash
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			t.extend(p)
			break
		}
		t.extend(p[:end])
		if p[end] == '\r' {
			t.returned = true
		} else {
			t.add(t.line())
			t.clear()
		}
		p = p[end+1:]
	}
	return n, nil
}

// extend appends to the line without an end.
func (t *Tail) extend(text []byte) {
	if len(text) == 0 {
		return
	}
	if t.returned {
		t.clear()
	}
	t.partial = append(t.partial, text...)
	if more := len(t.partial) - longestLine; more > 0 {
		t.partial = slices.Delete(t.partial, longestLine/2, longestLine/2+more)
		t.isCut = true
	}
}

// clear begins a line.
func (t *Tail) clear() { t.partial, t.isCut, t.returned = t.partial[:0], false, false }

// line returns the line without an end.
func (t *Tail) line() string {
	if t.isCut {
		return string(t.partial[:longestLine/2]) + gap + string(t.partial[longestLine/2:])
	}
	return string(t.partial)
}

func (t *Tail) add(line string) {
	if t.crash > 0 || t.IsGo && beginsCrash(line) {
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
		lines = append(lines[:len(lines):len(lines)], t.line())
	}
	return strings.Join(lines, "\n")
}

// LastLines returns the last n lines of a text, indented.
func LastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-n):], "\n  ")
}
