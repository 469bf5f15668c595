package analyze

import (
	"math"

	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
	"tuner/search/withheld"
)

// Withheld is the CPU time that others took from configurations in a campaign's load windows.
type Withheld struct {
	measure.Others
	// Slope is the change of the logarithm of throughput per unit of a trial's withheld time
	// (measure.Withheld). It is learned from trials of the same configuration and load. Deviation
	// is its standard deviation. Both are 0 if it could not be learned.
	Slope, Deviation float64
	// GPU is the largest share of a window in which other programs computed on a GPU of the engine.
	GPU float64
}

// newWithheld sums up the withheld time of the trials under a load.
func newWithheld(space search.Space, events []search.Event) Withheld {
	type cell struct {
		key  string
		load measure.Load
	}
	var cells []cell
	var taken, logs []float64
	var w Withheld
	for _, e := range events {
		instances := space.Instances(e.Trial.Candidate)
		for _, one := range e.Measurement.Whole().Windows {
			m := measure.Measurement{Windows: []measure.Window{one}}
			w.GPU = max(w.GPU, one.ForeignGPU())
			w.Others = w.With(one, withheld.Of(space, e.Trial.Candidate, instances, m).Taken())
		}
		if rate, ok := e.Measurement.Value(measure.Throughput); ok && rate > 0 && e.Measurement.Failure == nil {
			cells = append(cells, cell{e.Trial.Candidate.Key(), e.Trial.Load})
			taken, logs = append(taken, withheld.Of(space, e.Trial.Candidate, instances, e.Measurement).Taken()), append(logs, math.Log(rate))
		}
	}
	if w.Mean > 0 {
		const lost = -1 // all withheld time is lost
		v := stats.LearnVariate(cells, taken, logs, lost, 0)
		w.Slope, w.Deviation = v.Slope, math.Sqrt(v.Variance)
	}
	return w
}

// newSpeed learns the machine's speed from the trials in closed loops.
func newSpeed(events []search.Event) measure.Speed {
	var loops [][]measure.Window
	for _, e := range events {
		if e.Trial.Load.Concurrency > 0 && e.Measurement.Failure == nil {
			loops = append(loops, e.Measurement.Windows)
		}
	}
	return measure.SpeedOf(loops)
}

// Text returns a sentence for people; "" if others took almost nothing.
func (w Withheld) Text() string { return w.Sentence("figures are corrected to the average") }
