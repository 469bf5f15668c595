// Package process looks at the processes that the laboratory's programs start: which of them still
// run, and what they have written so far.
package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Process is a running process.
type Process struct {
	PID     string
	Command string // its program and arguments; "" if it has just ended
}

// Marked lists the processes that have a mark, NAME=VALUE, in their environment. Children inherit
// it. Processes of other users are not listed.
func Marked(mark string) (list []Process) {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
	for _, path := range environments {
		text, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(text), "\x00"), mark) {
			continue // gone, or of another user
		}
		pid := filepath.Base(filepath.Dir(path))
		command, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline")) // it may have gone
		list = append(list, Process{pid, strings.ReplaceAll(string(command), "\x00", " ")})
	}
	return list
}

// Output stores what a process writes while others read it. The zero Output is empty.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns the text so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
