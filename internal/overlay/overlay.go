// Package overlay runs a test again in a build with other files. Such tests prove that a new row of
// a table is enough. The go command gets the other files in an overlay, so no file of the tree
// changes. Only tests use the package.
package overlay

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// again is an environment variable that is set in the second run.
const again = "TUNER_TEST_OVERLAY"

// IsAgain reports whether this is the second run. In that run, a test whose rows are still missing
// fails.
func IsAgain() bool { return os.Getenv(again) != "" }

// Table returns the text of a file with additional rows at the end of its table. The file declares
// the table by `var table = `.
func Table(t *testing.T, path, rows string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	start := bytes.Index(text, []byte("var table = "))
	end := bytes.Index(text[max(start, 0):], []byte("\n}\n"))
	if start < 0 || end < 0 {
		t.Fatalf("%s: there is no table", path)
	}
	end += start
	return string(text[:end+1]) + rows + string(text[end+1:])
}

// Run runs a test again in a build with other texts for the files at these paths. It adds files
// that do not exist.
func Run(t *testing.T, texts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for path, text := range texts {
		absolute, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		replace[absolute] = filepath.Join(dir, filepath.Base(filepath.Dir(absolute))+"_"+filepath.Base(absolute))
		if err := os.WriteFile(replace[absolute], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-overlay", list, "-run", "^"+t.Name()+"$", ".")
	cmd.Env = append(os.Environ(), again+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("with the new rows: %v\n%s", err, out)
	}
}
