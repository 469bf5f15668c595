//go:build !noengine

package main

import (
	"context"
	"log/slog"
)

// logger makes the log that the options ask for.
func (o *serveOptions) logger(con console) *slog.Logger {
	text := slog.NewTextHandler(con.err, &slog.HandlerOptions{Level: slog.LevelDebug})
	return slog.New(switches{text, map[slog.Level]bool{
		slog.LevelError: o.logErrs, slog.LevelWarn: o.logWarning, slog.LevelInfo: o.logInfo, slog.LevelDebug: o.logVerbose > 0,
	}})
}

// switches is a handler that prints the levels which are on. As in tritonserver each has a switch of its own: warnings may be
// off while the chattier info is on.
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
