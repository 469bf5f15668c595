package modelrepo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A crash in the middle leaves no part of the folder in its place. Linux shows in /proc where the
// folder was when it was removed.
func TestRemoveInOneRenaming(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, config(t, `name: "m"`))
	folder, err := os.Open(filepath.Join(dir, "m"))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := Remove(dir, "m"); err != nil {
		t.Fatal(err)
	}
	last, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", folder.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(last, "/.tuner-") {
		t.Errorf("the folder was taken away in pieces, as %s", last)
	}
	checkOnly(t, dir)
}
