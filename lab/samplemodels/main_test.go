package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/lab/published"
	"tuner/model/onnx"
)

// execute runs the program and returns its output.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, &out, io.Discard)
	return out.String(), err
}

func TestWritesOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "models")
	path := filepath.Join(dir, "simple.onnx")
	check := func(want string) {
		t.Helper()
		out, err := execute(t, "-o", dir, "simple")
		if err != nil {
			t.Fatal(err)
		}
		if want = path + ": " + want + "\n"; out != want {
			t.Errorf("it said %q, want %q", out, want)
		}
		if _, err := onnx.Read(path); err != nil {
			t.Error(err)
		}
	}
	check("written")
	check("is there already")
	if err := os.Truncate(path, 100); err != nil { // like after an interruption of an older program
		t.Fatal(err)
	}
	check("written")
}

func TestAllSmallIsEveryGeneratedModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := execute(t, "-o", dir, "all-small"); err != nil {
		t.Fatal(err)
	}
	want := names(samples(options{}))
	if len(want) < 12+14 { // twelve kinds, and identity for each of 14 types
		t.Errorf("only %d models", len(want))
	}
	for _, name := range want {
		_, err := onnx.Read(filepath.Join(dir, name+".onnx"))
		if refused := err != nil; refused != (name == "sequence_input") { // it must be refused
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	check := func(arg string, want ...string) {
		t.Helper()
		chosen, err := choose([]string{arg}, options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := names(chosen)
		if diff := cmp.Diff(want, got[:min(len(want), len(got))]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arg, diff)
		}
	}
	check("identity", "identity_float", "identity_uint8")
	check("minilm", "minilm")
	check("all-small", "simple", "mlp")
}

func TestIterationsChangeTheModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, n := range []string{"5", "6"} {
		out, err := execute(t, "-o", dir, "-iterations", n, "constant_time")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(out, "written\n") {
			t.Errorf("%s iterations: %q", n, out)
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check := func(want string, args ...string) {
		t.Helper()
		if _, err := execute(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	check(`unknown models ["nope" "none"]`, "-o", dir, "nope", "simple", "none")
	check("add -o DIR", "simple")
	check("no models are given", "-o", dir)
	check("cannot open the wheel", "-o", dir, "-wheel", filepath.Join(dir, "none.whl"), "minilm")
	check(published.MiniLMFolder+"model.safetensors", "-o", dir, "-wheel", emptyWheel(t), "minilm")
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%v were written", left)
	}
}

func emptyWheel(t *testing.T) string {
	t.Helper()
	var content bytes.Buffer
	if err := zip.NewWriter(&content).Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "empty.whl")
	if err := os.WriteFile(path, content.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// The MiniLM of `make test` has the digest in the code. Only then can it be recognized without its
// weights.
func TestMiniLMDigest(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("TUNER_MODELS")
	if dir == "" {
		t.Skip("needs the MiniLM model: run 'make test', or set TUNER_MODELS to the folder of minilm.onnx")
	}
	got, err := digest(filepath.Join(dir, "minilm.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if got != minilmDigest {
		t.Errorf("digest %q, want %q", got, minilmDigest)
	}
}
