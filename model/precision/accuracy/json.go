package accuracy

import (
	"encoding/json"
	"math"
)

// storedFigures is the form of Figures in files. NaN is null there.
type storedFigures struct {
	// mean of the rows' cosine similarity with the original's output, −1 to 1
	CosineMean *float64 `json:"cosine_mean"`
	CosineP1   *float64 `json:"cosine_p1"`      // first percentile of the rows' cosine similarity
	CosineMin  *float64 `json:"cosine_min"`     // lowest cosine similarity of a row
	MaxAbs     *float64 `json:"max_abs_error"`  // largest absolute difference of all elements, in the output's unit
	MeanAbs    *float64 `json:"mean_abs_error"` // mean absolute difference of all elements, in the output's unit
	// largest difference relative to the original's element, or to 1 % of the row's largest element
	// if that is more
	MaxRel *float64 `json:"max_rel_error"`
	// mean of the same relative differences
	MeanRel *float64 `json:"mean_rel_error"`
	// share of rows, 0 to 1, whose largest element is at the same position; of whole numbers, the
	// share of equal rows
	Top1 *float64 `json:"top1_agreement"`
	// mean share, 0 to 1, of the original's five largest elements that are among the variant's five
	Top5 *float64 `json:"top5_agreement"`
	// share of rows, 0 to 1, whose nearest other row is the same
	Neighbour *float64 `json:"neighbour_agreement"`
	NonFinite int      `json:"non_finite"` // number of elements that are NaN or infinite only in the variant
	// number of elements that are NaN or infinite in the original, which are not judged; absent if 0
	Original int `json:"non_finite_original,omitempty"`
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
