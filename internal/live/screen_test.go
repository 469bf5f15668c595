//go:build linux || darwin

package live

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// A terminal that takes nothing (Ctrl-S, a connection that hangs) stops neither the campaign, which
// changes the frame and writes messages, nor a process that ends at once.
func TestStalledTerminal(t *testing.T) {
	t.Parallel()
	ear, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	_ = out.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := io.WriteString(out, strings.Repeat("full", 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	_ = out.SetWriteDeadline(time.Time{})

	begun := make(chan struct{})
	var once sync.Once
	s := NewScreen(out, nil, Look{})
	s.mode.fd = -1
	s.clock = func() time.Time { once.Do(func() { close(begun) }); return time.Time{} }
	s.isShown, s.changed, s.done = true, make(chan struct{}, 1), make(chan struct{})
	s.watchers.Go(s.draw)
	<-begun
	s.Update(func(f *Frame) { f.Note = "changed" })
	if _, err := io.WriteString(s, "a message\n"); err != nil || s.frame.Note != "a message" {
		t.Errorf("note %q, error %v", s.frame.Note, err)
	}
	s.Leave()

	text := make(chan string)
	go func() {
		all, _ := io.ReadAll(ear)
		text <- string(all)
	}()
	s.Close() // as soon as the terminal takes something again
	out.Close()
	if got := <-text; !strings.HasSuffix(got, "a message\n") || strings.Count(got, "a message\n") != 1 {
		t.Errorf("%q", strings.ReplaceAll(got, "full", ""))
	}
}
