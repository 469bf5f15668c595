// Package programtest writes the programs that tests execute.
package programtest

import (
	"os"
	"syscall"
	"testing"
)

// Write writes an executable file and returns its path. A child that another test forks meanwhile
// would inherit the open file, and the kernel refuses to execute a file that is open for writing
// (ETXTBSY, "text file busy"). So no child is forked until the file is closed.
func Write(t testing.TB, path, text string) string {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
