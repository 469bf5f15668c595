package accuracy

import (
	"encoding/json"
	"math"
)

// storedFigures is the form of Figures in files. NaN is null there.
type storedFigures struct {
	CosineMean *float64 `json:"cosine_mean"`
	CosineP1   *float64 `json:"cosine_p1"`
	CosineMin  *float64 `json:"cosine_min"`
	MaxAbs     *float64 `json:"max_abs_error"`
	MeanAbs    *float64 `json:"mean_abs_error"`
	MaxRel     *float64 `json:"max_rel_error"`
	MeanRel    *float64 `json:"mean_rel_error"`
	Top1       *float64 `json:"top1_agreement"`
	Top5       *float64 `json:"top5_agreement"`
	Neighbour  *float64 `json:"neighbour_agreement"`
	NonFinite  int      `json:"non_finite"`
	Original   int      `json:"non_finite_original,omitempty"`
}

// MarshalJSON writes null for NaN.
func (f Figures) MarshalJSON() ([]byte, error) {
	stored := func(v float64) *float64 {
		if !isFinite(v) {
			return nil
		}
		return &v
	}
	return json.Marshal(storedFigures{stored(f.CosineMean), stored(f.CosineP1), stored(f.CosineMin), stored(f.MaxAbs), stored(f.MeanAbs),
		stored(f.MaxRel), stored(f.MeanRel), stored(f.Top1), stored(f.Top5), stored(f.Neighbour), f.NonFinite, f.NonFiniteOriginal})
}

// UnmarshalJSON reads null, and missing figures, as NaN.
func (f *Figures) UnmarshalJSON(text []byte) error {
	var s storedFigures
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	number := func(v *float64) float64 {
		if v == nil {
			return math.NaN()
		}
		return *v
	}
	*f = Figures{number(s.CosineMean), number(s.CosineP1), number(s.CosineMin), number(s.MaxAbs), number(s.MeanAbs),
		number(s.MaxRel), number(s.MeanRel), number(s.Top1), number(s.Top5), number(s.Neighbour), s.NonFinite, s.Original}
	return nil
}
