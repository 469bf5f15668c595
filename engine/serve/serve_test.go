package serve

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	if err := listen(ctx, io.Discard, parse(t), server, frontends.Options{Log: log}, nil); err != nil {
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

// Each level has its own switch, also in loggers that are derived from the first one.
func TestServeLogSwitches(t *testing.T) {
	t.Parallel()
	for options, want := range map[string][]string{
		"":                                  {"INFO", "WARN", "ERROR"},
		"--log-info=false":                  {"WARN", "ERROR"},
		"--log-warning=false":               {"INFO", "ERROR"},
		"--log-error=false":                 {"INFO", "WARN"},
		"--log-verbose=1 --log-error=0":     {"DEBUG", "INFO", "WARN"},
		"--log-verbose=1 --log-info=0":      {"DEBUG", "WARN", "ERROR"},
		"--log-info=0 --log-warning=0":      {"ERROR"},
		"--log-warning=false --log-error=0": {"INFO"},
	} {
		o := parse(t, strings.Fields(options)...)
		var out strings.Builder
		root := newLogger(&out, o.LogLevels())
		for _, log := range []*slog.Logger{root, root.With("key", "value"), root.WithGroup("group")} {
			out.Reset()
			log.Debug("text")
			log.Info("text")
			log.Warn("text")
			log.Error("text")
			var got []string
			for line := range strings.Lines(out.String()) {
				_, rest, _ := strings.Cut(line, "level=")
				level, _, _ := strings.Cut(rest, " ")
				got = append(got, level)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%q: levels (-want +got):\n%s", options, d)
			}
		}
	}
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
