package main

import (
	"context"
	"errors"
	"testing"

	"tuner/modelrepo"
	"tuner/ortlib"
	"tuner/profile"
	"tuner/search"
)

// An interruption while the providers are tried must not go into the journal as providers that create no session.
func TestInterruptedProvidersAreNotUnavailable(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	space := search.Space{Knobs: []search.Knob{{Name: search.KnobExecutionProvider, Values: []search.Value{"cpu", "openvino"}}}}
	subject := profile.Subject{Files: []profile.File{{Source: modelrepo.Source{Path: "model.onnx"}}}}
	if facts, err := unavailable(ctx, []ortlib.Build{{}}, space, subject); !errors.Is(err, context.Canceled) {
		t.Errorf("unavailable are %v, error %v; want the interruption", facts, err)
	}
}
