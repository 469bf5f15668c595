// Package logging is the log of the server: lines in Triton's form or as JSON, a switch for each
// level that clients can turn, a file that can be opened again, and a line for each request.
//
// It stands below the front ends, which turn the switches and add the requests, and below package
// serve, which opens it. Everything else writes to its slog.Logger. It knows no model and no
// protocol.
package logging

import (
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"tuner/internal/durable"
	"tuner/internal/exit"
)

// Format is the form of lines, as --log-format has it.
type Format string

// Forms of lines. JSON is this server's own.
const (
	Default Format = "default"
	ISO8601 Format = "ISO8601"
	JSON    Format = "json"
)

// Formats lists all forms.
func Formats() []Format { return []Format{Default, ISO8601, JSON} }

// Known reports whether a form exists.
func (f Format) Known() bool { return slices.Contains(Formats(), f) }

// MaxVerbose is the largest level of verbosity: Triton keeps it in 32 bits with a sign.
const MaxVerbose = math.MaxInt32

// Settings of a log. Each level has its own switch: warnings may be off while info is on.
type Settings struct {
	Info, Warning, Error bool
	Verbose              uint32 // 0: no debug messages
	Format               Format
}

// Log writes lines to a file or to the console. Its zero value writes nothing. All methods are safe
// for concurrent use.
type Log struct {
	info, warning, failure atomic.Bool
	verbose                atomic.Uint32
	format                 atomic.Value // Format
	out                    *file        // nil: nowhere
}

// New opens a log. path "" is the console.
func New(console io.Writer, path string, s Settings) (*Log, error) {
	l := &Log{out: &file{path: path, flag: "log-file", console: console}}
	l.SetInfo(s.Info)
	l.SetWarning(s.Warning)
	l.SetError(s.Error)
	l.SetVerbose(s.Verbose)
	l.SetFormat(s.Format)
	return l, l.out.open()
}

// Logger returns a logger that writes to the log.
func (l *Log) Logger() *slog.Logger { return slog.New(newHandler(l)) }

// File returns the path of the file; "": the console.
func (l *Log) File() string {
	if l.out == nil {
		return ""
	}
	return l.out.path
}

// Settings returns the settings of now.
func (l *Log) Settings() Settings {
	return Settings{Info: l.info.Load(), Warning: l.warning.Load(), Error: l.failure.Load(), Verbose: l.verbose.Load(), Format: l.formatNow()}
}

func (l *Log) formatNow() Format {
	if f, ok := l.format.Load().(Format); ok {
		return f
	}
	return Default
}

// SetInfo turns messages of level info on or off.
func (l *Log) SetInfo(on bool) { l.info.Store(on) }

// SetWarning turns warnings on or off.
func (l *Log) SetWarning(on bool) { l.warning.Store(on) }

// SetError turns errors on or off.
func (l *Log) SetError(on bool) { l.failure.Store(on) }

// SetVerbose sets the level of verbosity.
func (l *Log) SetVerbose(level uint32) { l.verbose.Store(level) }

// SetFormat sets the form of the lines that follow.
func (l *Log) SetFormat(f Format) { l.format.Store(f) }

// on reports whether messages of a level are written.
func (l *Log) on(level slog.Level) bool {
	switch {
	case l.out == nil:
		return false
	case level < slog.LevelInfo:
		return l.verbose.Load() > 0
	case level < slog.LevelWarn:
		return l.info.Load()
	case level < slog.LevelError:
		return l.warning.Load()
	default:
		return l.failure.Load()
	}
}

// Reopen opens the file again, after a program that rotates logs has renamed it. If that fails, the
// log continues in the earlier file and says so.
func (l *Log) Reopen() {
	if err := l.out.open(); err != nil {
		l.Logger().Error("cannot open the log file, so the log stays in the earlier one", "error", err)
	}
}

// file is a file that can be opened again under its name, or the console.
type file struct {
	path    string // "": the console
	flag    string // that names it, for messages
	console io.Writer

	mu      sync.Mutex
	current *os.File // nil: the console
}

// open opens the file with that name. If that fails, the earlier one stays.
func (f *file) open() error {
	if f == nil || f.path == "" {
		return nil
	}
	opened, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return exit.Usagef("cannot open --%s=%q: %v", f.flag, f.path, durable.Cause(err))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.current
	if f.current = opened; before != nil {
		return before.Close()
	}
	return nil
}

// Write writes whole lines.
func (f *file) Write(lines []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		return f.console.Write(lines)
	}
	return f.current.Write(lines)
}
