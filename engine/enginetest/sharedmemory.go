package enginetest

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// SharedFile makes a file in /dev/shm with the given content, until the test ends. It returns the key of
// regions in it. The test is skipped where there is no such folder.
func SharedFile(t testing.TB, content []byte) (key string, file *os.File) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("shared memory is Linux's")
	}
	file, err := os.CreateTemp("/dev/shm", "tuner-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	})
	if _, err := file.Write(content); err != nil {
		t.Fatal(err)
	}
	return "/" + filepath.Base(file.Name()), file
}
