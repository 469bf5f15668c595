package serve

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync"

	"tuner/internal/durable"
	"tuner/internal/exit"
)

// logFile writes the log to a file, which can be opened again, or to the console. To rotate the
// log, a program renames the file and sends SIGHUP.
type logFile struct {
	path    string // "": to the console
	console io.Writer

	mu   sync.Mutex
	file *os.File
}

func newLogFile(path string, console io.Writer) (*logFile, error) {
	l := &logFile{path: path, console: console}
	return l, l.open()
}

// open opens the file with that name. If that fails, the log continues in the earlier file.
func (l *logFile) open() error {
	if l.path == "" {
		return nil
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return exit.Usagef("cannot open --log-file=%q: %v", l.path, durable.Cause(err))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.file
	if l.file = f; before != nil {
		return before.Close()
	}
	return nil
}

// Write writes a message.
func (l *logFile) Write(message []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return l.console.Write(message)
	}
	return l.file.Write(message)
}

// openAgain is open, after a SIGHUP.
func (l *logFile) openAgain(log *slog.Logger) {
	if err := l.open(); err != nil {
		log.Error("SIGHUP: cannot open the log file, so the log stays in the earlier one", "error", err)
	}
}

// newLogger makes a log that prints the levels that are on.
func newLogger(to io.Writer, on map[slog.Level]bool) *slog.Logger {
	text := slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug})
	return slog.New(switches{text, on})
}

// switches is a handler that prints the levels that are on.
type switches struct {
	slog.Handler
	on map[slog.Level]bool
}

// Enabled reports whether exactly this level is on.
func (s switches) Enabled(_ context.Context, level slog.Level) bool { return s.on[level] }

// WithAttrs returns the handler with attributes, and the same switches.
func (s switches) WithAttrs(attrs []slog.Attr) slog.Handler {
	return switches{s.Handler.WithAttrs(attrs), s.on}
}

// WithGroup returns the handler with a group, and the same switches.
func (s switches) WithGroup(name string) slog.Handler {
	return switches{s.Handler.WithGroup(name), s.on}
}
