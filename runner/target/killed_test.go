package target

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"tuner/engine/api"
	"tuner/internal/children/childrentest"
	"tuner/internal/programtest"
	"tuner/runner"
)

// TestServerEndsWithTuner checks that a server behind a script does not outlive a tuner that is
// killed.
func TestServerEndsWithTuner(t *testing.T) {
	childrentest.CheckKilled(t, func(script string) {
		program := programtest.Write(t, filepath.Join(t.TempDir(), "server.sh"), "#!/bin/sh\n"+script)
		never := func(api.Announcement) (api.Client, error) { return nil, errors.New("not ready") }
		_, _ = Local{Program: program, Dial: never}.Launch(context.Background(), runner.Server{Repository: t.TempDir()})
	})
}
