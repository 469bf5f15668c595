package logging

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// all are the settings with every level on.
var all = Settings{Info: true, Warning: true, Error: true, Verbose: 1, Format: Default}

func newLog(t *testing.T, console io.Writer, s Settings) *Log {
	t.Helper()
	l, err := New(console, "", s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Each line has the severity, the time in UTC, the process and the place, and the message as JSON has
// it. The times in Triton's forms are those that the real one prints: microseconds, or whole seconds.
func TestForms(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 4, 15, 22, 17, 0, 500_000_123, time.FixedZone("", 7200))
	pid := os.Getpid()
	for format, want := range map[Format]string{
		Default: fmt.Sprintf(`W0415 20:17:00.500000 %d unknown:0] "a \"b\"\nc" model="m" n=1 yes=true g.took="1.5s" g.inner.err="x y"`, pid),
		ISO8601: fmt.Sprintf(`2026-04-15T20:17:00Z W %d unknown:0] "a \"b\"\nc" model="m" n=1 yes=true g.took="1.5s" g.inner.err="x y"`, pid),
		JSON:    `{"time":"2026-04-15T20:17:00.500000123Z","level":"WARN","msg":"a \"b\"\nc","model":"m","n":1,"yes":true,"g":{"took":"1.5s","inner":{"err":"x y"}}}`,
	} {
		var out bytes.Buffer
		l := newLog(t, &out, all)
		log := l.Logger().With("model", "m", "n", 1).With("yes", true).WithGroup("g")
		l.SetFormat(format) // also for loggers that were made before
		r := slog.NewRecord(at, slog.LevelWarn, "a \"b\"\nc", 0)
		r.Add("took", 1500*time.Millisecond, slog.Group("inner", "err", errors.New("x y")))
		if err := log.Handler().Handle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want+"\n", out.String()); d != "" {
			t.Errorf("%s (-want +got):\n%s", format, d)
		}
	}
}

// The place is that of the call, in all forms.
func TestPlace(t *testing.T) {
	t.Parallel()
	for format, want := range map[Format]string{
		Default: `^I\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ logging_test\.go:\d+\] "text"\n$`,
		ISO8601: `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ I \d+ logging_test\.go:\d+\] "text"\n$`,
		JSON:    `^\{"time":"[^"]+Z","level":"INFO","source":"logging_test\.go:\d+","msg":"text"\}\n$`,
	} {
		var out bytes.Buffer
		s := all
		s.Format = format
		newLog(t, &out, s).Logger().Info("text")
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%s: %q does not match %s", format, out.String(), want)
		}
	}
}

// Each level has its own switch, also in loggers that are derived from the first one, and also after
// a switch was turned.
func TestSwitches(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Settings{
		"IWE":  {Info: true, Warning: true, Error: true},
		"WE":   {Warning: true, Error: true},
		"IE":   {Info: true, Error: true},
		"IW":   {Info: true, Warning: true},
		"IIW":  {Info: true, Warning: true, Verbose: 1},
		"IWEx": {Info: true, Warning: true, Error: true, Format: ISO8601},
		"I":    {Verbose: 7},
		"":     {},
	} {
		var out strings.Builder
		l := newLog(t, &out, all)
		root := l.Logger()
		derived := []*slog.Logger{root, root.With("key", "value"), root.WithGroup("group")}
		l.SetInfo(s.Info)
		l.SetWarning(s.Warning)
		l.SetError(s.Error)
		l.SetVerbose(s.Verbose)
		for _, log := range derived {
			out.Reset()
			log.Debug("text")
			log.Info("text")
			log.Warn("text")
			log.Error("text")
			var got strings.Builder
			for line := range strings.Lines(out.String()) {
				got.WriteByte(line[0])
			}
			if want := strings.TrimSuffix(want, "x"); got.String() != want {
				t.Errorf("%+v: got %q, want %q", s, got.String(), want)
			}
		}
	}
}

// A zero log writes nothing and can be asked and set.
func TestZeroLog(t *testing.T) {
	t.Parallel()
	var l Log
	l.SetError(true)
	l.SetVerbose(1)
	l.Logger().With("a", 1).Error("text")
	if want := (Settings{Error: true, Verbose: 1, Format: Default}); l.Settings() != want || l.File() != "" {
		t.Errorf("got %+v, %q", l.Settings(), l.File())
	}
	l.Reopen()
}

// A program that rotates logs renames the file, and the next lines go to a new one. Where none can be
// opened, they go on in the old one.
func TestReopen(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "log")
	l, err := New(io.Discard, path, all)
	if err != nil || l.File() != path {
		t.Fatal(l.File(), err)
	}
	l.Logger().Info("first")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	l.Reopen()
	l.Logger().Info("second")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	old := l.out.current
	if l.Reopen(); l.out.current != old {
		t.Error("the log has left its file for none")
	}
	if text, err := os.ReadFile(path + ".1"); err != nil || !strings.Contains(string(text), "first") || strings.Contains(string(text), "second") {
		t.Errorf("the renamed file: %q, %v", text, err)
	}
	if _, err := New(io.Discard, filepath.Join(folder, "missing", "log"), all); err == nil || !strings.Contains(err.Error(), "cannot open --log-file=") {
		t.Errorf("got %v", err)
	}
}

// Whatever a client sends, a line stays one line, and is valid UTF-8.
func FuzzLine(f *testing.F) {
	f.Add("a\nI0415 20:17:00.500000 1 x.go:1] \"forged\"", "\x00\xff\u2028")
	f.Fuzz(func(t *testing.T, message, value string) {
		for _, format := range Formats() {
			var out bytes.Buffer
			s := all
			s.Format = format
			newLog(t, &out, s).Logger().Info(message, "id", value)
			line, rest, _ := strings.Cut(out.String(), "\n")
			if rest != "" || strings.ContainsAny(line, "\r\x00\x1b\u2028\u2029\u0085") || line == "" {
				t.Errorf("%s: %q", format, out.String())
			}
		}
	})
}
