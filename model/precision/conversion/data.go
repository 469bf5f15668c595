package conversion

import (
	"cmp"
	"fmt"

	"tuner/model/dataset"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/precision"
)

// Seed makes the random data the same in every run, so that the cache can be used.
const Seed = 1

// Data selects the inputs for comparison and calibration.
type Data struct {
	Path        string // "": random inputs
	Calibration string // "": the inputs of the comparison, or other random ones
	Rows        int    // of each; 0: all, or precision.SyntheticRows random ones
	Shapes      map[string][]int64
}

// Read returns the data for the comparison and for the calibration. The latter is empty if they are
// the same. Random data uses different rows for calibration. With the same rows, calibration would
// look better than it is.
func (d Data) Read(m *onnx.Model) (data, calibration dataset.Dataset, err error) {
	if d.Path != "" {
		data, err = d.file(d.Path, m)
	} else if data, err = d.random(m, Seed); err != nil {
		err = fmt.Errorf("%w\nhere sizes are given by --shape NAME:1,2, or by rows of your own with --data", err)
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
	o := inputs.Options{Shape: d.Shapes}
	return dataset.Synthetic(m, o, cmp.Or(d.Rows, precision.SyntheticRows(m, o)), seed)
}

// file reads a data file, or its first rows.
func (d Data) file(path string, m *onnx.Model) (dataset.Dataset, error) {
	data, err := dataset.Read(path, m)
	if err != nil || d.Rows == 0 {
		return data, err
	}
	return data.Head(d.Rows), nil
}
