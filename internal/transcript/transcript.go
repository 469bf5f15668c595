// Package transcript keeps what several goroutines or programs write at the same time, for tests.
package transcript

import (
	"strings"
	"sync"
)

// Text collects what is written to it. Its zero value is empty and ready.
type Text struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// String returns all that was written so far.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
