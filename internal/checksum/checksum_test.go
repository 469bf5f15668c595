package checksum

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "abc")
	if _, err := File(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	// FIPS 180-2, appendix B.1.
	if got, err := File(path); err != nil || got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := File(filepath.Dir(path)); err == nil {
		t.Error("a folder has a checksum")
	}
}

func TestOfJSON(t *testing.T) {
	t.Parallel()
	// printf '["a",1,{"x":"\\u003c"}]' | sha256sum. Keys of caches and steps depend on these bytes.
	want := "751029feaa92fcf90c8424b994c8fb04c231b2b48f92f3d4441d291cac7eb30e"
	if got, err := OfJSON([]any{"a", 1, map[string]string{"x": "<"}}); err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := OfJSON(math.NaN()); err == nil {
		t.Error("what JSON cannot say has a checksum")
	}
}
