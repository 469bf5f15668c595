package engine_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"tuner/engine"
	"tuner/engine/enginetest"
	"tuner/internal/durable"
)

// The next server that starts removes the files of a killed server. It removes neither the files of
// a running server nor other files.
func TestUploadsOfKilledServers(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, &enginetest.Backend{}, "")
	if err := s.Load(t.Context(), "living", engine.Override{Config: `{}`, Files: map[string][]byte{"1/model.onnx": {1}}}); err != nil {
		t.Fatal(err)
	}
	living, err := filepath.Glob(filepath.Join(temp, "*"))
	if err != nil || len(living) != 1 {
		t.Fatalf("folders %v, %v; want one", living, err)
	}
	if _, err := durable.TryLockFolder(living[0]); err == nil {
		t.Error("the folder of a living server is not locked")
	}
	dead := filepath.Join(temp, "tuner-models-1234567", "2", "m", "1")
	other := filepath.Join(temp, "tuner-other")
	for _, dir := range []string{dead, other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "model.onnx"), []byte{1}, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(temp, "tuner-models-link")); err != nil {
		t.Fatal(err)
	}
	next, err := engine.New(engine.Options{Repositories: []string{temp}, Backend: &enginetest.Backend{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
	for path, isThere := range map[string]bool{
		living[0]: true, other: true, filepath.Join(outside, "file"): true, filepath.Join(temp, "tuner-models-1234567"): false,
	} {
		if _, err := os.Stat(path); (err == nil) != isThere {
			t.Errorf("%s: %v, want it there: %v", path, err, isThere)
		}
	}
	s.Close()
	if _, err := os.Stat(living[0]); err == nil {
		t.Error("the folder outlives its server")
	}
}
