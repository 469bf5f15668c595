package conversion

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tuner/model/dataset"
	"tuner/model/dataset/npy"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/precision"
	"tuner/model/precision/accuracy"
	"tuner/model/precision/recipe"
)

// The rows are the compared ones, also if a request of a fixed batch has several. A long reason
// stays on the screen.
func TestConvertText(t *testing.T) {
	t.Parallel()
	reason := strings.Repeat("it cannot be run ", 20)
	r := Result{Request: Request{Model: "m.onnx", Providers: []string{"cpu", "openvino"}}, Variants: []Variant{{
		Precision: recipe.Int8, Rejected: map[string]string{"openvino": reason},
		made: precision.Variant{Precision: recipe.Int8, Accuracy: map[string]accuracy.Report{"cpu": {Rows: 12}}},
	}}}
	var out strings.Builder
	r.Settings.Data = dataset.Dataset{Name: "rows.npz", Rows: 3}
	if err := r.WriteText(&out); err != nil {
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

// From a file, the first rows are used for both. The requested number of random rows is made.
// Random data is not calibrated on itself.
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
	if err := os.WriteFile(path, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data Data
		want []int // rows for the comparison, and for the calibration
	}{
		"random":                    {Data{}, []int{64, 64}},
		"three random ones":         {Data{Rows: 3}, []int{3, 3}},
		"a file":                    {Data{Path: path, Calibration: path}, []int{7, 7}},
		"three of a file":           {Data{Path: path, Calibration: path, Rows: 3}, []int{3, 3}},
		"three of one file for all": {Data{Path: path, Rows: 3}, []int{3, 0}},
		"more than a file has":      {Data{Path: path, Rows: 8}, []int{7, 0}},
	} {
		data, calibration, err := c.data.Read(m)
		if err != nil || !slices.Equal([]int{data.Rows, calibration.Rows}, c.want) {
			t.Errorf("%s: rows %d and %d, %v; want %d", name, data.Rows, calibration.Rows, err, c.want)
			continue
		}
		if c.data.Path == path && data.Digest() != made.Head(data.Rows).Digest() {
			t.Errorf("%s: these are not the first rows", name)
		}
		if data.Synthetic && data.Digest() == calibration.Digest() {
			t.Errorf("%s: it is calibrated on the rows that it is compared on", name)
		}
	}
}
