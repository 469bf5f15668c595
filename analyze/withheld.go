package analyze

import (
	"math"

	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
)

// Withheld is what others took of the CPU time that configurations could have used in a campaign's load windows.
type Withheld struct {
	measure.Others
	// Slope is what the logarithm of throughput changes by with what was withheld from a trial (measure.Withheld), learned
	// from trials of the same configuration and load, and Deviation its standard deviation; zeros where nothing was.
	Slope, Deviation float64
}

// newWithheld sums up the trials of loads.
func newWithheld(space search.Space, events []search.Event) Withheld {
	type cell struct {
		key  string
		load measure.Load
	}
	var cells []cell
	var taken, logs []float64
	var w Withheld
	for _, e := range events {
		instances := space.Facts.Instances(e.Trial.Candidate)
		for _, one := range e.Measurement.Windows {
			m := measure.Measurement{Windows: []measure.Window{one}}
			w.Others = w.With(one, space.Withheld(e.Trial.Candidate, instances, m))
		}
		if rate, ok := e.Measurement.Value(measure.Throughput); ok && rate > 0 && e.Measurement.Failure == nil {
			cells = append(cells, cell{e.Trial.Candidate.Key(), e.Trial.Load})
			taken, logs = append(taken, space.Withheld(e.Trial.Candidate, instances, e.Measurement)), append(logs, math.Log(rate))
		}
	}
	if w.Mean > 0 {
		const lost = -1 // what is taken is lost
		v := stats.LearnVariate(cells, taken, logs, lost, 0)
		w.Slope, w.Deviation = v.Slope, math.Sqrt(v.Variance)
	}
	return w
}

// Text tells people of it in a sentence; "" where others took next to nothing.
func (w Withheld) Text() string { return w.Sentence("figures are corrected to the average") }
