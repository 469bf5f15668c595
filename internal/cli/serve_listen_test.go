//go:build !noengine

package cli

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"tuner/engine"
	"tuner/engine/enginetest"
	"tuner/engine/frontends"
	"tuner/modelconfig"
)

// A server that is asked to end while it loads models ends well: that they are not ready is no failure.
func TestServeIsInterruptedWhileLoading(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "m", "")
	ctx, interrupt := context.WithCancel(t.Context())
	log := slog.New(slog.DiscardHandler)
	server, err := engine.New(engine.Options{Repositories: []string{root}, ExitOnError: true, Log: log,
		Backend: &enginetest.Backend{FailLoad: func(*modelconfig.Config) error { interrupt(); return ctx.Err() }}})
	if err != nil {
		t.Fatal(err)
	}
	if err := listen(ctx, console{err: io.Discard}, &serveOptions{exitTimeout: 30}, server, frontends.Options{Log: log}, nil); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}
