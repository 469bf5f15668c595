package cli

import (
	"io"
	"os"
	"testing"

	"tuner/spec"
)

// Only the bundled engine keeps a model's sessions when another configuration of it is loaded.
func TestServersThatReload(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]bool{spec.RunnerBundled: false, spec.RunnerLocal: true, spec.RunnerRemote: true} {
		s, err := newServer(console{err: io.Discard}, spec.Profile{Name: "m"}, spec.Runner{Mode: mode, Server: os.Args[0], URL: "localhost"}, "runner")
		if err != nil {
			t.Fatal(err)
		}
		if s.options.Reloads != want {
			t.Errorf("%s: reloads %t, want %t", mode, s.options.Reloads, want)
		}
	}
}
