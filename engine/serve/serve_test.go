package serve

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/spf13/pflag"

	"tuner/engine"
	"tuner/engine/enginetest"
	"tuner/engine/flags"
	"tuner/engine/frontends"
	"tuner/model/modelconfig"
)

// A server that is asked to end while it loads models ends without an error, although the models
// are not ready.
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
	if err := listen(ctx, io.Discard, parse(t), server, nil, frontends.Options{Log: log}, nil); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

// parse reads flags as the command line does.
func parse(t *testing.T, args ...string) *flags.Options {
	t.Helper()
	o := &flags.Options{}
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.Add(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

// Clients may fill three eighths of the memory, but never more than their own bound.
func TestServeMemoryBounds(t *testing.T) {
	t.Parallel()
	const gibibyte = 1 << 30
	for usable, want := range map[int64]int64{
		0:             6 * gibibyte, // unknown
		64 * gibibyte: 6 * gibibyte,
		16 * gibibyte: 6 * gibibyte,
		8 * gibibyte:  3 * gibibyte,
		gibibyte / 2:  3 * gibibyte / 16,
	} {
		if got := clientMemory(usable); got != want {
			t.Errorf("%d bytes: clients may fill %d, want %d", usable, got, want)
		}
	}
}
