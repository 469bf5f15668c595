package engine_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tuner/engine"
	"tuner/engine/enginetest"
	"tuner/internal/alloctest"
)

// FuzzOverride loads a model that a client sends: a configuration, and files. For any of these, the
// load ends. No file is written outside the folder for uploads. No file remains once the model is
// gone.
func FuzzOverride(f *testing.F) {
	f.Add(`{}`, "1/model.onnx", []byte{1})
	f.Add(`{"max_batch_size": 4, "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [4]}]}`, "1/model.onnx", []byte{1})
	f.Add(`{"model_warmup": [{"name": "w", "batch_size": 1, "inputs": {"X": {"data_type": "TYPE_FP32", "dims": [4], "input_data_file": "x"}}}]}`, "warmup/x", []byte("0123456789abcdef"))
	f.Add(`{"default_model_filename": "../x", "version_policy": {"specific": {"versions": [7]}}}`, "7/../../../x", []byte{1})
	f.Add(`{"parameters": {"intra_op_thread_count": {"string_value": "99999999999"}}, "instance_group": [{"count": 2147483647}]}`, "/etc/x", []byte{1})
	temp, root := f.TempDir(), f.TempDir()
	f.Setenv("TMPDIR", temp)
	enginetest.WriteModel(f, root, "m", "")
	s, err := engine.Open(f.Context(), engine.Options{Repositories: []string{root}, Explicit: true, Backend: &enginetest.Backend{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, config, path string, content []byte) {
		defer alloctest.Bound(t, len(config)+len(path)+len(content))()
		if err := s.Load(t.Context(), "up", engine.Override{Config: config, Files: map[string][]byte{path: content}}); err == nil {
			if err := s.Unload("up"); err != nil {
				t.Error(err)
			}
		}
		// an unloaded model is freed when its last request is answered
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			left, err := filepath.Glob(filepath.Join(temp, "*", "*"))
			if err == nil && len(left) == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("left are %v, %v", left, err)
			}
		}
		if found, err := os.ReadDir(temp); err != nil || len(found) > 1 {
			t.Errorf("%d entries beside the folder for uploads, %v", len(found), err)
		}
		if found, err := os.ReadDir(root); err != nil || len(found) != 1 {
			t.Errorf("the repository has %v, %v", found, err)
		}
	})
}
