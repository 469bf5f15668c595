package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"tuner/dataset"
	"tuner/dataset/npy"
	"tuner/onnx/build"
	"tuner/onnx/inputs"
)

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
