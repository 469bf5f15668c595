package landscape

import (
	"math"

	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
	"tuner/search/standings"
)

// Coverage tells whether a stated interval, or bound, contains the truth.
type Coverage struct{ Stated, Covers bool }

// cover checks whether the intervals of the answer's finals contain the truth.
func (l *Landscape) cover(o *Outcome, answer standings.Standing, machine *Machine, finals []search.Event) {
	truth := l.Find(answer.Candidate, answer.Point.Level)
	if truth == nil || !truth.Measurable() {
		return
	}
	own := throughputs(finals, answer.Candidate, answer.Point.Level)
	o.Value = coverage(own, math.Log(truth.Throughput))
	if len(finals) > 0 {
		begin := finals[0].Elapsed - finals[0].Measurement.Times.Total()
		o.ValueNow = coverage(own, math.Log(truth.Throughput*machine.weather.mean(begin, finals[len(finals)-1].Elapsed)))
	}
	if answer.Candidate.IsDefault() || len(own) < 2 {
		return
	}
	level, base := mostMeasured(finals, search.Candidate{})
	if p := l.Find(search.Candidate{}, level); p != nil && len(base) > 1 {
		o.Gain = gainCoverage(own, base, math.Log(truth.Throughput/p.Throughput))
	}
}

// throughputs returns the logarithms of a configuration's throughput at a load in the final trials,
// each on its own launch.
func throughputs(finals []search.Event, c search.Candidate, level float64) []float64 {
	var logs []float64
	for _, e := range finals {
		if e.Trial.Candidate.Key() != c.Key() || e.Trial.Load.Level() != level {
			continue
		}
		if x, ok := e.Measurement.Estimate(measure.Throughput); ok && x.Value > 0 {
			logs = append(logs, math.Log(x.Value))
		}
	}
	return logs
}

// mostMeasured returns the load at which a configuration had most final trials.
func mostMeasured(finals []search.Event, c search.Candidate) (float64, []float64) {
	best, most := 0.0, []float64(nil)
	for _, e := range finals {
		if level := e.Trial.Load.Level(); e.Trial.Candidate.Key() == c.Key() && level != best {
			if logs := throughputs(finals, c, level); len(logs) > len(most) {
				best, most = level, logs
			}
		}
	}
	return best, most
}

// coverage checks whether Student's interval over launches contains the truth. analyze reports this
// interval for three launches or more.
func coverage(logs []float64, truth float64) Coverage {
	if len(logs) < 3 {
		return Coverage{}
	}
	e := stats.Mean(logs)
	return Coverage{true, e.Lo <= truth && truth <= e.Hi}
}

// gainCoverage checks the same for the difference of two means with the pooled spread between
// launches, as analyze reports a gain.
func gainCoverage(a, b []float64, truth float64) Coverage {
	n, m := float64(len(a)), float64(len(b))
	half := stats.TQuantile(0.975, n+m-2) * math.Sqrt((squaresOf(a)+squaresOf(b))/(n+m-2)*(1/n+1/m))
	difference := stats.Mean(a).Value - stats.Mean(b).Value
	return Coverage{true, math.Abs(difference-truth) <= half}
}

// squaresOf returns the sum of squares around the mean.
func squaresOf(values []float64) float64 {
	sum, mean := 0.0, stats.Mean(values).Value
	for _, x := range values {
		sum += (x - mean) * (x - mean)
	}
	return sum
}
