package peers

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindNamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TUNER_PEERS", dir)
	_, err := Find()
	if err == nil || !strings.Contains(err.Error(), "scripts/peers.sh "+dir) {
		t.Errorf("error %v does not say how to install the peers", err)
	}
}

func TestServerThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho no models here\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := start(context.Background(), program, nil, t.TempDir(), nil)
	if err == nil || !strings.Contains(err.Error(), "no models here") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v does not tell how the server ended and what it said", err)
	}
}
