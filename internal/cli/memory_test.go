//go:build linux && !race

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tuner/internal/exit"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/pipeline/steps"
)

// noMemory matches the messages of a program without memory. They come from Go's runtime, its
// threads, or tuner itself.
var noMemory = regexp.MustCompile(`out of memory|cannot allocate memory|failed to reserve page summary memory|pthread_create failed|failed to create new OS thread`)

// If a verb runs out of memory, it ends with an error that says so. Every file that it wrote is
// complete. The race detector reserves more address space than these limits, so the test is not in its
// builds.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	tuner, err := exec.LookPath("tuner")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	model, analysis := filepath.Join(dir, "large.onnx"), filepath.Join(dir, "analyze.yaml")
	g := build.NewGraph("large") // several hundred MiB are read and parsed
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(1))
	g.OutputAs("y", g.Node("MatMul", []string{x, g.Floats("w", make([]float32, 32<<20), 1, 32<<20)}), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(32<<20))
	writeModel(t, model, g.Model())
	journal, err := filepath.Abs(filepath.Join("..", "..", "testdata", "journals", "guided"))
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("input: %q\noutput: %q\nformats: [csv, config, html]\n", journal, filepath.Join(dir, "analyze"))
	if err := os.WriteFile(analysis, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range [][]string{{"init", model, "-o", filepath.Join(dir, "init")}, {"analyze", "-f", analysis}} {
		out := filepath.Join(dir, verb[0])
		run := func(limit string) (code int, message string, files []steps.File) {
			cmd := exec.Command("/bin/sh", append([]string{"-c", "ulimit -v " + limit + ` && exec "$@"`, "sh", tuner}, verb...)...)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			_ = cmd.Run() // ProcessState has the outcome
			files, err := steps.FilesOf(out, out)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
			// readers ignore hidden files that were not renamed yet
			files = slices.DeleteFunc(files, func(f steps.File) bool { return strings.HasPrefix(filepath.Base(f.Path), ".") })
			return cmd.ProcessState.ExitCode(), errs.String(), files
		}
		code, message, want := run("unlimited")
		if code != exit.OK || len(want) == 0 {
			t.Fatalf("%s without a limit: exit code %d, %d files: %s", verb[0], code, len(want), message)
		}
		for _, mebibytes := range []int{300, 600, 900, 1200, 1500} {
			code, message, files := run(fmt.Sprint(mebibytes << 10))
			for _, f := range files {
				if !slices.Contains(want, f) {
					t.Errorf("%s in %d MiB: %s is another than without a limit", verb[0], mebibytes, f.Path)
				}
			}
			switch {
			case code == exit.OK && len(files) != len(want):
				t.Errorf("%s in %d MiB: %d files, want %d", verb[0], mebibytes, len(files), len(want))
			case code != exit.OK && !noMemory.MatchString(message):
				t.Errorf("%s in %d MiB: exit code %d, and nothing is said of memory: %.500s", verb[0], mebibytes, code, message)
			}
			t.Logf("%s in %d MiB: exit code %d", verb[0], mebibytes, code)
		}
	}
}
