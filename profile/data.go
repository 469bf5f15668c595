package profile

import (
	"cmp"
	"fmt"

	"tuner/model/dataset"
	"tuner/model/precision"
	"tuner/spec"
)

// Data returns the inputs for the comparison of variants, and those for the calibration of their
// ranges. They come from the profile's files, from the rows of the requests, or are valid random ones. Errors are InputErrors.
func Data(p spec.Profile, s Subject) (data, calibration dataset.Dataset, err error) {
	read := func(field, path string, seed uint64) (dataset.Dataset, error) {
		most := cmp.Or(p.Accuracy.Rows, precision.DefaultRows)
		switch {
		case path == "" && s.Rows != nil:
			return s.Rows.Head(most), nil
		case path == "":
			return dataset.Synthetic(s.Model, s.InputOptions(p), most, seed)
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
