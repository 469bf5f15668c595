package serve

import (
	"log/slog"
	"testing"
)

func TestHeld(t *testing.T) {
	for text, want := range map[string]int{"": 0, "6": 6, "0": 0, "-3": 0, "six": 0} {
		t.Setenv(holdVariable, text)
		if got := held(slog.New(slog.DiscardHandler), holdVariable); got != want {
			t.Errorf("%s=%q holds %d requests, want %d", holdVariable, text, got, want)
		}
	}
}
