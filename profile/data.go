package profile

import (
	"cmp"
	"fmt"
	"math"

	"tuner/model/dataset"
	"tuner/model/onnx/inputs"
	"tuner/model/precision"
	"tuner/spec"
)

// Data returns the inputs for the comparison of variants, and those for the calibration of their
// ranges. They come from the profile's files, from the rows of the requests, or are valid random
// ones. Errors are InputErrors.
func Data(p spec.Profile, s Subject) (data, calibration dataset.Dataset, err error) {
	read := func(field, path string, seed uint64) (dataset.Dataset, error) {
		switch {
		case path == "" && s.Rows != nil:
			return s.Rows.Head(cmp.Or(p.Accuracy.Rows, precision.DefaultRows)), nil
		case path == "":
			return synthetic(p, s, p.Accuracy.Rows, seed)
		}
		d, err := dataset.Read(path, s.Model)
		if err != nil {
			return dataset.Dataset{}, fmt.Errorf("%s: accuracy.%s: %w", p.Path, field, err)
		}
		if p.Accuracy.Rows > 0 {
			d = d.Head(p.Accuracy.Rows)
		}
		return d, nil
	}
	if data, err = read("data", p.Accuracy.Data, p.Search.Seed); err != nil {
		return data, calibration, &InputError{err}
	}
	switch {
	case p.Accuracy.Calibration != "":
		calibration, err = read("calibration", p.Accuracy.Calibration, 0)
	case p.Accuracy.Data == "" && s.Rows == nil: // other rows than those of the comparison
		calibration, err = read("calibration", "", p.Search.Seed+1)
	default:
		calibration = data
	}
	if err != nil {
		return data, calibration, &InputError{err}
	}
	return data, calibration, nil
}

// synthetic makes random rows in the shapes of the requests: of a mix, each kind in its share, and
// at least one row of each. rows is their number; 0: as many as the size of the inputs allows.
func synthetic(p spec.Profile, s Subject, rows int, seed uint64) (dataset.Dataset, error) {
	if s.Mix == nil {
		o := s.InputOptions(p)
		return dataset.Synthetic(s.Model, o, cmp.Or(rows, precision.SyntheticRows(s.Model, o)), seed)
	}
	if rows == 0 {
		rows = precision.DefaultRows
		for _, k := range s.Mix {
			rows = min(rows, precision.SyntheticRows(s.Model, inputs.Options{Shape: k.Shapes}))
		}
	}
	parts := make([]dataset.Dataset, len(s.Mix))
	for i, k := range s.Mix {
		var err error
		n := max(1, int(math.Round(k.Share*float64(rows))))
		if parts[i], err = dataset.Synthetic(s.Model, inputs.Options{Shape: k.Shapes}, n, seed+uint64(i)<<32); err != nil {
			return dataset.Dataset{}, err
		}
	}
	return dataset.Join(parts), nil
}
