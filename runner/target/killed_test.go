package target

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tuner/engine/api"
	"tuner/internal/children/childrentest"
	"tuner/runner"
)

// TestServerEndsWithTuner checks that a server behind a script does not outlive a tuner that is
// killed.
func TestServerEndsWithTuner(t *testing.T) {
	childrentest.CheckKilled(t, func(script string) {
		program := filepath.Join(t.TempDir(), "server.sh")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
		never := func(api.Announcement) (api.Client, error) { return nil, errors.New("not ready") }
		_, _ = Local{Program: program, Dial: never}.Launch(context.Background(), runner.Server{Repository: t.TempDir()})
	})
}
