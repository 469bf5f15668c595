package durable_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"tuner/internal/durable"
)

func TestWriteFileReplaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"first", "second, longer"} {
		if err := durable.WriteFile(path, durable.Bytes([]byte(text))); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("file holds %q, %v; want %q", got, err, text)
		}
	}
	checkEntries(t, path)
}

func TestFailedWriteLeavesTheEarlierFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := durable.WriteFile(path, durable.Bytes([]byte("kept"))); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space")
	err := durable.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write([]byte("half"))
		return errors.Join(err, full)
	})
	if !errors.Is(err, full) {
		t.Errorf("error is %v, want %v", err, full)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "kept" {
		t.Errorf("file holds %q, %v; want the earlier text", got, err)
	}
	checkEntries(t, path)
}

// checkEntries verifies that there is no other file beside this one.
func checkEntries(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v; want the file alone", entries, err)
	}
}

func TestCauseNamesNoFile(t *testing.T) {
	t.Parallel()
	_, err := os.Open(filepath.Join(t.TempDir(), "absent"))
	if got := durable.Cause(err); !errors.Is(got, fs.ErrNotExist) || got.Error() != "no such file or directory" {
		t.Errorf("Cause(%v) = %v", err, got)
	}
}
