package profile

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"tuner/internal/durable"
	"tuner/model/dataset"
	"tuner/model/mix"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/profile/campaign"
	"tuner/search"
	"tuner/spec"
)

// CheckMix checks a profile's mix against its model. Errors are InputErrors.
func CheckMix(p spec.Profile, s Subject) error {
	if _, err := mixOf(p, s); err != nil {
		return &InputError{err}
	}
	return nil
}

// mixOf returns the kinds of a profile's requests: those of the user's rows, or of the profile's
// mix. nil: all requests have one shape.
func mixOf(p spec.Profile, s Subject) (mix.Mix, error) {
	if s.Rows != nil && s.Rows.Parts != nil {
		return ofRows(s.Rows.Dataset)
	}
	if p.Inputs.Mix.IsZero() {
		return nil, nil
	}
	field := fmt.Sprintf("%s: load.inputs.mix", p.Path)
	weighted, err := weightedShapes(p, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	base := campaign.RequestShapes(p, s.Config)
	for i, k := range weighted {
		shapes := maps.Clone(base)
		maps.Copy(shapes, k.Shapes)
		derived, err := inputs.Derive(s.Model, inputs.Options{Shape: shapes})
		if err != nil && len(p.Inputs.Mix.Shapes) > 0 {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		weighted[i].Shapes = map[string][]int64{}
		for _, in := range derived {
			weighted[i].Shapes[in.Name] = in.Dims
		}
	}
	m, err := mix.New(weighted)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", field, err)
	case len(m) == 1:
		return nil, fmt.Errorf("%s: all its shapes are equal: write %v as load.inputs.shape", field, m[0].Shapes)
	}
	return m, nil
}

// paddedOf returns the kinds of a mix under each value of the knob padding.
func paddedOf(p spec.Profile, s Subject) (map[search.Value]mix.Mix, error) {
	i := slices.IndexFunc(p.Knobs, func(k search.Knob) bool { return k.Name == search.KnobPadding })
	if i < 0 && p.Inputs.Pad != nil {
		return nil, fmt.Errorf("%s: load.inputs.pad: nothing is padded: write space.padding, or remove the line", p.Path)
	}
	if i < 0 {
		return nil, nil
	}
	field := p.Path + ": space." + search.KnobPadding
	if s.Mix == nil {
		return nil, fmt.Errorf("%s: all requests have one shape, so there is nothing to pad: write load.inputs.mix, or remove the line", field)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Inputs.Pad)) {
		if _, known := s.Mix[0].Shapes[name]; !known {
			return nil, fmt.Errorf("%s: load.inputs.pad: the model has no input %q; its inputs are %q", p.Path, name, slices.Sorted(maps.Keys(s.Mix[0].Shapes)))
		}
	}
	padded := map[search.Value]mix.Mix{}
	for _, value := range p.Knobs[i].Values {
		padding, err := mix.ParsePadding(string(value))
		if err == nil {
			padded[value], err = padding.Padded(s.Mix)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
	}
	return padded, nil
}

// ofRows returns the kinds of rows of several shapes.
func ofRows(d dataset.Dataset) (mix.Mix, error) {
	kinds := make([]mix.Kind, len(d.Parts))
	for i, part := range d.Parts {
		kinds[i] = mix.Kind{Share: float64(part.Rows), Shapes: part.Shapes()}
	}
	return mix.New(kinds)
}

// weightedShapes returns the shapes of a profile's mix, as far as it sets them.
func weightedShapes(p spec.Profile, s Subject) (_ []mix.Kind, err error) {
	of := p.Inputs.Mix
	if len(of.Shapes) > 0 {
		return slices.Clone(of.Shapes), nil
	}
	sizes := of.Values
	switch {
	case of.Histogram != "":
		file, err := os.Open(of.Histogram)
		if err != nil {
			return nil, fmt.Errorf("cannot open the histogram %q: %w%s", of.Histogram, durable.Cause(err), pathHint(p))
		}
		defer file.Close()
		if sizes, err = mix.ReadHistogram(file); err != nil {
			return nil, fmt.Errorf("cannot read the histogram %q: %w", of.Histogram, err)
		}
	case of.Lognormal.P50 > 0:
		sizes = of.Lognormal.Sizes()
	case of.OfTrace:
		if sizes, err = sizesOf(s.Trace); err != nil {
			return nil, err
		}
	}
	var kinds []mix.Kind
	for _, size := range mix.Binned(sizes) {
		shapes, err := sized(s.Model, p.Inputs.Shape, of.Dimension, size.Size)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, mix.Kind{Share: size.Weight, Shapes: shapes})
	}
	return kinds, nil
}

// sized returns the shapes of the inputs with a dimension of the given name, which has the given
// size. Their other sizes come from the profile's shapes, or are fixed.
func sized(m *onnx.Model, base map[string][]int64, dimension string, size int64) (map[string][]int64, error) {
	skip := 0
	if inputs.Batches(m) {
		skip = 1
	}
	shapes := map[string][]int64{}
	var symbols []string
	for _, in := range m.Inputs() {
		own := in.Shape[min(skip, len(in.Shape)):]
		dims := make([]int64, len(own))
		given := base[in.Name]
		for i, d := range own {
			if d.Symbol != "" && !slices.Contains(symbols, d.Symbol) {
				symbols = append(symbols, d.Symbol)
			}
			switch {
			case d.Symbol == dimension:
				dims[i], shapes[in.Name] = size, dims
			case d.IsFixed():
				dims[i] = d.Size
			case len(given) == len(own):
				dims[i] = given[i]
			}
		}
		if shapes[in.Name] != nil && slices.Contains(dims, 0) {
			return nil, fmt.Errorf("the input %s has other open dimensions too: give its shape in load.inputs.shape, or write the mix as a list of shapes", in)
		}
	}
	if len(shapes) == 0 && len(symbols) == 0 {
		return nil, errors.New("no input has a dimension with a name: write the mix as a list of shapes")
	}
	if len(shapes) == 0 {
		return nil, fmt.Errorf("dimension: no input has a dimension %q; the inputs have %q", dimension, symbols)
	}
	return shapes, nil
}
