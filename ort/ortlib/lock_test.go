package ortlib

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// signal is closed by the first write.
type signal chan struct{}

func (s signal) Write(text []byte) (int, error) {
	close(s)
	return len(text), nil
}

func TestLock(t *testing.T) {
	t.Parallel()
	store := storeWith(t)
	unlock, err := store.lock(context.Background(), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	// A second process waits, says so, and gives up when its context ends.
	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	waiting, done := make(signal), make(chan error)
	go func() {
		_, err := store.lock(ctx, waiting)
		done <- err
	}()
	<-waiting
	cancel(enough)
	if err := <-done; !errors.Is(err, enough) {
		t.Errorf("second lock: error %v, want the context's cause", err)
	}
	unlock()
	again, err := store.lock(context.Background(), &bytes.Buffer{})
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	again()
}

// The next attempt removes the files of killed installations, even if it fails too. Builds stay.
func TestInstallRemovesLeftovers(t *testing.T) {
	t.Setenv("PATH", "") // there is no python3, so the attempt fails
	store := storeWith(t, "cpu@1.24.4")
	touch(t, filepath.Join(store.dir, ".cpu@1.31.1-1234567", "onnxruntime", "capi", "libonnxruntime.so.1.31.1"))
	touch(t, filepath.Join(store.dir, "downloads", "download-1234567", "part.whl"))
	_, err := store.Install(context.Background(), "cpu@1.31.1", &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "python3 is not on the PATH") || !strings.Contains(err.Error(), "TUNER_ORT_LIBRARY") {
		t.Errorf("error %v", err)
	}
	for _, gone := range []string{".cpu@1.31.1-1234567", "downloads/download-1234567", "cpu@1.31.1"} {
		if _, err := os.Stat(filepath.Join(store.dir, gone)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there (%v)", gone, err)
		}
	}
	if _, err := store.Find("cpu@1.24.4"); err != nil {
		t.Error(err)
	}
}
