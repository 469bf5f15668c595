//go:build unix

package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tuner/engine"
	"tuner/engine/enginetest"
)

// A model whose files are pipes or folders is refused at once. Opening a pipe would block for ever.
func TestModelFilesAreRegular(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil func(dir string) error
		want  string
	}{
		"pipe":               {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "model.onnx"), 0o644) }, "model.onnx of model 'odd' is not a regular file (prw"},
		"empty folder":       {func(dir string) error { return os.Mkdir(filepath.Join(dir, "model.onnx"), 0o755) }, "failed to stat file"},
		"folder of a folder": {func(dir string) error { return os.MkdirAll(filepath.Join(dir, "model.onnx", "model.onnx"), 0o755) }, "is not a regular file (drwx"},
		"link to a pipe": {func(dir string) error {
			return errors.Join(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644), os.Symlink("pipe", filepath.Join(dir, "model.onnx")))
		}, "is not a regular file (prw"},
		"pipe beside the model": {func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "model.onnx"), nil, 0o644), syscall.Mkfifo(filepath.Join(dir, "weights"), 0o644))
		}, "weights of model 'odd' is not a regular file (prw"},
		"socket in a sub-folder": {func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "model.onnx"), nil, 0o644), os.Mkdir(filepath.Join(dir, "sub"), 0o755),
				syscall.Mknod(filepath.Join(dir, "sub", "s"), syscall.S_IFSOCK|0o644, 0))
		}, "sub/s of model 'odd' is not a regular file (S"},
	} {
		b := &enginetest.Backend{}
		s, root := open(t, b, "")
		made := b.Created()
		enginetest.WriteModel(t, root, "odd", `backend: "onnxruntime" max_batch_size: 4`)
		dir := filepath.Join(root, "odd", "1")
		if err := errors.Join(os.Remove(filepath.Join(dir, "model.onnx")), tc.spoil(dir)); err != nil {
			t.Fatal(err)
		}
		err := s.Load(t.Context(), "odd", engine.Override{})
		if err == nil || !strings.Contains(err.Error(), tc.want) || b.Created() != made {
			t.Errorf("%s: got %v and %d sessions, want an error that says %q", name, err, b.Created()-made, tc.want)
		}
	}
}

// Warm-ups that would take years are refused before the first run.
func TestWarmupsAreBounded(t *testing.T) {
	t.Parallel()
	sample := func(batch, count uint32) string {
		return fmt.Sprintf(`{"name":"w","batch_size":%d,"count":%d,"inputs":{"INPUT0":{"data_type":"TYPE_INT32","dims":[16],"zero_data":true},"INPUT1":{"data_type":"TYPE_INT32","dims":[16],"zero_data":true}}}`, batch, count)
	}
	for samples, want := range map[string]string{
		sample(1, 1<<32-1):                    "batch_size 1 and count 4294967295 take the samples over 1048576 requests",
		sample(1<<32-1, 1<<32-1):              "take the samples over 1048576 requests",
		sample(4, 1<<18+1):                    "take the samples over 1048576 requests",
		sample(1, 1<<20) + "," + sample(1, 0): "batch_size 1 and count 0 take the samples over 1048576 requests",
		sample(4, 100) + "," + sample(1, 0):   "",
	} {
		var runs int
		b := &enginetest.Backend{Fail: func(int) error { runs++; return nil }}
		s, _ := open(t, b, "max_batch_size: 4 instance_group { count: 1 kind: KIND_CPU }")
		err := s.Load(t.Context(), "m", engine.Override{Config: `{"max_batch_size":4,"instance_group":[{"count":1,"kind":"KIND_CPU"}],"model_warmup":[` + samples + `]}`})
		switch {
		case want == "" && (err != nil || runs != 101):
			t.Errorf("got %v after %d runs, want 101", err, runs)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || runs > 0):
			t.Errorf("got %v after %d runs, want an error that says %q", err, runs, want)
		}
	}
}
