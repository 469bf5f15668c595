package conversion

import (
	"cmp"
	"fmt"

	"tuner/model/dataset"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/precision"
)

// Seed makes the same random data in every run, so that the cache serves.
const Seed = 1

// Data says which inputs variants are compared on and calibrated with.
type Data struct {
	Path        string // "": random ones
	Calibration string // "": those to compare on, or other random ones
	Rows        int    // of each; 0: all, or precision.DefaultRows random ones
	Shapes      map[string][]int64
}

// Read returns the data to compare on and those to calibrate on, which are empty where they are the
// same. Random data are calibrated on other random rows: on the very rows, calibration would look
// better than it is.
func (d Data) Read(m *onnx.Model) (data, calibration dataset.Dataset, err error) {
	if d.Path != "" {
		data, err = d.file(d.Path, m)
	} else if data, err = d.random(m, Seed); err != nil {
		err = fmt.Errorf("%w\nhere sizes are given as --shape NAME:1,2; --data takes rows of your own", err)
	}
	switch {
	case err != nil:
	case d.Calibration != "":
		calibration, err = d.file(d.Calibration, m)
	case data.Synthetic:
		calibration, err = d.random(m, Seed+1)
	}
	return data, calibration, err
}

func (d Data) random(m *onnx.Model, seed uint64) (dataset.Dataset, error) {
	return dataset.Synthetic(m, inputs.Options{Shape: d.Shapes}, cmp.Or(d.Rows, precision.DefaultRows), seed)
}

// file reads a data file, or its first rows.
func (d Data) file(path string, m *onnx.Model) (dataset.Dataset, error) {
	data, err := dataset.Read(path, m)
	if err != nil || d.Rows == 0 {
		return data, err
	}
	return data.Head(d.Rows), nil
}
