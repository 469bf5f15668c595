//go:build conformance

package conformance

import (
	"os"
	"testing"
)

// makeSharedFiles makes the files that requests register, until the test ends. Both servers read and
// write the same ones.
func makeSharedFiles(t *testing.T) {
	t.Helper()
	const page = 4096
	zeros := string(make([]byte, page))
	for name, content := range map[string]string{
		"a": "\x01\x00\x00\x00\x02", "b": "\x07", // sixteen integers each, most of them 0
		"out": zeros, "strings": "\x02\x00\x00\x00ab\x02\x00\x00\x00cd", "page": zeros + zeros, "size": zeros + zeros,
	} {
		path := "/dev/shm" + sharedKey(name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(path) })
		if err := os.Truncate(path, max(page, int64(len(content)))); err != nil {
			t.Fatal(err)
		}
	}
}
