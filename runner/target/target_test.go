package target

import (
	"io"
	"os"
	"testing"

	"tuner/profile/journal"
	"tuner/runner"
	"tuner/spec"
)

// Only the bundled engine keeps a model's sessions when it loads another configuration of the
// model.
func TestServersThatReload(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]bool{spec.RunnerBundled: false, spec.RunnerLocal: true, spec.RunnerRemote: true} {
		s, err := open(spec.Profile{Name: "m"}, spec.Runner{Mode: mode, Server: os.Args[0], URL: "localhost"}, "runner", io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if s.options.Reloads != want {
			t.Errorf("%s: reloads %t, want %t", mode, s.options.Reloads, want)
		}
	}
}

// The memory of a server that runs already is not that of this program's control group.
func TestRemoteServersHaveTheirOwnMemory(t *testing.T) {
	t.Parallel()
	s := server{runner: spec.Runner{Mode: spec.RunnerRemote, URL: "localhost"}, options: runner.Options{Group: 4e9, Refuses: true}, info: &journal.ServerInfo{}}
	if err := s.openRemote("m"); err != nil {
		t.Fatal(err)
	}
	if s.options.Group != 0 || s.options.Refuses {
		t.Errorf("it may have a share of %d bytes, refused %t", s.options.Group, s.options.Refuses)
	}
}

// Secrets come from the environment. A variable that is not set causes an error with its name.
func TestExpand(t *testing.T) {
	t.Setenv("TUNER_TEST_TOKEN", "s3cret")
	if got, err := expand("Bearer ${TUNER_TEST_TOKEN}"); err != nil || got != "Bearer s3cret" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := expand("$TUNER_TEST_NOSUCH"); err == nil || err.Error() != "the environment variable TUNER_TEST_NOSUCH is not set" {
		t.Errorf("error %v", err)
	}
}
