package logging

import (
	"context"
	"encoding"
	"fmt"
	"log/slog"
	"os"
	"path"
	"runtime"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

// handler writes messages in the form of now. It keeps attributes in both forms, since the form may
// change after a logger was derived.
type handler struct {
	log    *Log
	pid    int
	text   string // the attributes so far, as text
	groups string // with a dot behind each
	json   slog.Handler
}

func newHandler(l *Log) *handler {
	h := &handler{log: l, pid: os.Getpid()}
	if l.out != nil {
		h.json = slog.NewJSONHandler(l.out, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true, ReplaceAttr: replaced})
	} else {
		h.json = slog.DiscardHandler
	}
	return h
}

// replaced shortens the place in the source, and writes times in UTC and durations with their unit.
func replaced(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case time.Duration:
		return slog.String(a.Key, v.String())
	case *slog.Source:
		if v.File == "" {
			return slog.Attr{}
		}
		return slog.String(a.Key, path.Base(v.File)+":"+strconv.Itoa(v.Line))
	case time.Time:
		return slog.Time(a.Key, v.UTC())
	}
	return a
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return h.log.on(level) }

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	text := []byte(h.text)
	for _, a := range attrs {
		text = appendAttr(text, h.groups, a)
	}
	next.text, next.json = string(text), h.json.WithAttrs(attrs)
	return &next
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.groups, next.json = h.groups+name+".", h.json.WithGroup(name)
	return &next
}

// Handle implements slog.Handler. Triton's form is that of glog, with the message as a JSON text.
// Attributes follow as in the structured form of Kubernetes' klog:
//
//	I1127 03:54:46.123456 1234 load.go:12] "loaded" model="m"
//	2026-11-27T03:54:46Z I 1234 load.go:12] "loaded" model="m"
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	format := h.log.formatNow()
	if format == JSON {
		return h.json.Handle(ctx, r)
	}
	line := make([]byte, 0, 256)
	if at := r.Time.UTC(); format == ISO8601 {
		line = append(at.AppendFormat(line, "2006-01-02T15:04:05Z "), letter(r.Level), ' ')
	} else {
		line = append(at.AppendFormat(append(line, letter(r.Level)), "0102 15:04:05.000000"), ' ')
	}
	line = append(strconv.AppendInt(line, int64(h.pid), 10), ' ')
	line = append(appendPlace(line, r.PC), "] "...)
	line = appendQuoted(line, r.Message)
	line = append(line, h.text...)
	r.Attrs(func(a slog.Attr) bool {
		line = appendAttr(line, h.groups, a)
		return true
	})
	_, err := h.log.out.Write(append(line, '\n'))
	return err
}

// letter is the severity of a level. As in Triton, debug messages have that of info.
func letter(level slog.Level) byte {
	switch {
	case level < slog.LevelWarn:
		return 'I'
	case level < slog.LevelError:
		return 'W'
	default:
		return 'E'
	}
}

// appendPlace appends the file and line of a program counter.
func appendPlace(line []byte, pc uintptr) []byte {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	if frame.File == "" {
		return append(line, "unknown:0"...)
	}
	line = append(append(line, path.Base(frame.File)...), ':')
	return strconv.AppendInt(line, int64(frame.Line), 10)
}

// appendAttr appends " key=value". Numbers and booleans stand alone, and all else is quoted.
func appendAttr(line []byte, groups string, a slog.Attr) []byte {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if a.Key != "" {
			groups += a.Key + "."
		}
		for _, inner := range value.Group() {
			line = appendAttr(line, groups, inner)
		}
		return line
	}
	if a.Equal(slog.Attr{}) {
		return line
	}
	line = append(append(append(append(line, ' '), groups...), a.Key...), '=')
	switch value.Kind() {
	case slog.KindFloat64:
		return strconv.AppendFloat(line, value.Float64(), 'f', -1, 64)
	case slog.KindInt64, slog.KindUint64, slog.KindBool:
		return append(line, value.String()...)
	case slog.KindTime:
		return appendQuoted(line, value.Time().UTC().Format(time.RFC3339Nano))
	case slog.KindAny:
		return appendQuoted(line, textOf(value.Any()))
	default:
		return appendQuoted(line, value.String())
	}
}

// textOf returns a value as text.
func textOf(v any) string {
	if m, ok := v.(encoding.TextMarshaler); ok {
		if text, err := m.MarshalText(); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(v)
}

// appendQuoted appends a text as JSON has it, so that a line stays a line whatever a client sends.
func appendQuoted(line []byte, text string) []byte {
	line = append(line, '"')
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == '"' || r == '\\':
			line = append(line, '\\', byte(r))
		case r == '\n':
			line = append(line, '\\', 'n')
		case r == '\t':
			line = append(line, '\\', 't')
		case r == utf8.RuneError && size == 1:
			line = append(line, `\ufffd`...)
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029': // the last two end lines, too
			line = fmt.Appendf(line, `\u%04x`, r)
		default:
			line = append(line, text[:size]...)
		}
		text = text[size:]
	}
	return append(line, '"')
}
