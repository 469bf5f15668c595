package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tuner/dataset"
	"tuner/dataset/npy"
	"tuner/onnx/build"
	"tuner/onnx/inputs"
	"tuner/ortlib"
	"tuner/precision"
	"tuner/precision/accuracy"
)

// The rows are those that were compared, also where a request of a fixed batch has several; a long reason does not leave the screen.
func TestConvertText(t *testing.T) {
	t.Parallel()
	reason := strings.Repeat("it cannot be run ", 20)
	c := conversion{Model: "m.onnx", Data: dataset.Dataset{Name: "rows.npz", Rows: 3}, Variants: []result{{
		Precision: precision.Int8, Rejected: map[string]string{"openvino": reason},
		variant: precision.Variant{Precision: precision.Int8, Accuracy: map[string]accuracy.Report{"cpu": {Rows: 12}}},
	}}}
	var out strings.Builder
	if err := c.print(&out, convertOptions{output: "text", providers: []string{"cpu", "openvino"}}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "variants of m.onnx, compared with it on 12 rows of rows.npz\n") {
		t.Errorf("the rows are not told:\n%s", &out)
	}
	for line := range strings.Lines(out.String()) {
		if utf8.RuneCountInString(line) > 121 { // 120 and the end of the line
			t.Errorf("too long: %s", line)
		}
	}
	if joined := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(joined, "int8 on openvino is rejected: "+strings.TrimSpace(reason)) {
		t.Errorf("the reason is not told whole:\n%s", &out)
	}
}

// Of a file come the first rows, of both; random rows are as many as are asked for; what is random is not calibrated on itself.
func TestConvertRows(t *testing.T) {
	t.Parallel()
	m := build.MLP()
	made, err := dataset.Synthetic(m, inputs.Options{}, 7, 1)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := npy.WriteArchive(&archive, made.Inputs); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rows.npz")
	writeText(t, path, archive.String(), 0o600)
	for name, c := range map[string]struct {
		options convertOptions
		want    []int // rows to compare on, and to calibrate on
	}{
		"random":                    {convertOptions{}, []int{64, 64}},
		"three random ones":         {convertOptions{rows: 3}, []int{3, 3}},
		"a file":                    {convertOptions{data: path, calibration: path}, []int{7, 7}},
		"three of a file":           {convertOptions{data: path, calibration: path, rows: 3}, []int{3, 3}},
		"three of one file for all": {convertOptions{data: path, rows: 3}, []int{3, 0}},
		"more than a file has":      {convertOptions{data: path, rows: 8}, []int{7, 0}},
	} {
		data, calibration, err := c.options.datasets(m)
		if err != nil || !slices.Equal([]int{data.Rows, calibration.Rows}, c.want) {
			t.Errorf("%s: rows %d and %d, %v; want %d", name, data.Rows, calibration.Rows, err, c.want)
			continue
		}
		if c.options.data == path && data.Digest() != made.Head(data.Rows).Digest() {
			t.Errorf("%s: these are not the first rows", name)
		}
		if data.Synthetic && data.Digest() == calibration.Digest() {
			t.Errorf("%s: it is calibrated on the rows that it is compared on", name)
		}
	}
}

// A provider is served by the installed build of its flavour, unless flag or environment names a build: then that serves all.
func TestBuildFor(t *testing.T) {
	cache := t.TempDir()
	library := filepath.Join(cache, "runtimes", "openvino@1.2.3", "onnxruntime", "capi", "libonnxruntime.so.1.2.3")
	if err := errors.Join(os.MkdirAll(filepath.Dir(library), 0o755), os.WriteFile(library, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TUNER_CACHE", cache)
	base := ortlib.Build{Flavour: ortlib.External, Version: "1.31.1", Library: "mine.so"}
	check := func(environment, named, provider, want string) {
		t.Helper()
		t.Setenv("TUNER_ORT_LIBRARY", environment)
		if got := buildFor(provider, named, base); got.Library != want {
			t.Errorf("%s, with %q in the environment and %q as the flag: %q, want %q", provider, environment, named, got.Library, want)
		}
	}
	check("", "", "openvino", library)
	check("", "", "cuda", base.Library) // not installed
	check("", "", "xnnpack", base.Library)
	check("", "mine.so", "openvino", base.Library)
	check("mine.so", "", "openvino", base.Library)
}
