package flags

import (
	"path/filepath"
	"strings"
	"testing"
)

// The file in the results' folder names library files by absolute paths. Names of builds do not
// change.
func TestLibrariesOfAMovableSweep(t *testing.T) {
	t.Parallel()
	space, err := sweepSpace([]string{"runtime=cpu,lib/own.so", "intra_op_threads=1,2"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := sweepFile{Model: "m.onnx", Space: space}.movable("out")
	if err != nil {
		t.Fatal(err)
	}
	library, err := filepath.Abs("lib/own.so")
	if err != nil {
		t.Fatal(err)
	}
	if want := "runtime: [cpu, " + library + "]"; !strings.Contains(string(text), want) {
		t.Errorf("%q is not in:\n%s", want, text)
	}
}
