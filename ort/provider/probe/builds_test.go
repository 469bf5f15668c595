package probe

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/internal/hostinfo"
	"tuner/internal/programtest"
	"tuner/ort/ortlib"
	"tuner/search"
)

// A default configuration uses GPUs only if the build that serves it computes on them. With any
// other build the engine has none.
func TestGPUs(t *testing.T) {
	t.Parallel()
	build := func() (ortlib.Build, error) { return ortlib.Build{Flavour: "cpu"}, nil }
	for name, tt := range map[string]struct {
		gpus   int
		find   func() (ortlib.Build, error)
		answer string
		want   int
	}{
		"the build for cuda":           {2, build, `{"providers": ["tensorrt", "cuda", "cpu"]}`, 2},
		"a build without it":           {2, build, `{"providers": ["openvino", "cpu"]}`, 0},
		"a build that does not open":   {2, build, `{"error": "it is damaged"}`, 2},
		"a build that is missing":      {2, func() (ortlib.Build, error) { return ortlib.Build{}, errors.New("not installed") }, "", 2},
		"a machine without GPUs":       {0, nil, "", 0}, // no build is asked
		"a child that does not answer": {2, build, "", 2},
	} {
		p := script(t, "echo '"+tt.answer+"'")
		if got := p.GPUs(t.Context(), hostinfo.Host{GPUs: make([]hostinfo.GPU, tt.gpus)}, tt.find); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// script makes a prober whose children are a shell script.
func script(t *testing.T, lines string) Prober {
	t.Helper()
	p := Prober{Program: filepath.Join(t.TempDir(), "tuner"), Name: "tuner", Timeout: time.Minute}
	programtest.Write(t, p.Program, "#!/bin/sh\n"+lines+"\n")
	return p
}

func TestOpen(t *testing.T) {
	t.Parallel()
	build := ortlib.Build{Flavour: ortlib.External, Library: "mine.so"}
	opened, err := script(t, `echo '{"version": "1.2"}'`).Open(t.Context(), build)
	if err != nil || opened.Version != "1.2" || opened.Library != build.Library {
		t.Errorf("it opens: %v, %v", opened, err)
	}
	if _, err := script(t, `echo '{"error": "it is damaged"}'`).Open(t.Context(), build); err == nil || !strings.Contains(err.Error(), "external: it is damaged") {
		t.Errorf("it does not: %v", err)
	}
	if _, err := script(t, `exit 3`).Open(t.Context(), build); err == nil || !strings.HasSuffix(err.Error(), "; install a working one with 'tuner runtime install cpu', or name another with --ort-library") {
		t.Errorf("its process crashes: %v", err)
	}
}

// An interruption must not go into the journal as providers that create no session.
func TestInterruptedProvidersAreNotUnavailable(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	space := search.Space{Knobs: []search.Knob{{Name: search.KnobExecutionProvider, Values: []search.Value{"cpu", "openvino"}}}}
	if facts, err := script(t, "exit 1").Facts(ctx, []ortlib.Build{{}}, space, "model.onnx"); !errors.Is(err, context.Canceled) {
		t.Errorf("facts are %v, error %v; want the interruption", facts, err)
	}
}

// The default's execution provider is tried even if the space does not set it. The test sees this
// by an interruption.
func TestProviderOfTheDefaultIsTried(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for provider, want := range map[search.Value]error{"cpu": nil, "openvino": context.Canceled} {
		space := search.Space{Facts: search.Facts{Base: map[string]search.Value{search.KnobExecutionProvider: provider}}}
		if _, err := script(t, "exit 1").Facts(ctx, []ortlib.Build{{}}, space, "model.onnx"); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", provider, err, want)
		}
	}
}
