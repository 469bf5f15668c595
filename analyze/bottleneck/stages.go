package bottleneck

import (
	"time"

	"tuner/measure"
)

// Stage has the figures of one stage in the windows of a pipeline.
type Stage struct {
	Model     string
	Instances int
	Busy      float64 // mean number of instances that execute
	Calls     float64 // requests to it for each of the pipeline's
	Queue     float64 // s, the mean wait of such a request
	Compute   float64 // s, the mean time in which an instance works on it
	MeanBatch float64 // inferences per execution; 0 unknown
}

// Utilization returns the share of the time in which the stage's instances execute, 0..1.
func (s Stage) Utilization() float64 { return s.Busy / float64(max(s.Instances, 1)) }

// Limiting returns the bottleneck of a pipeline: the stage whose instances are busy for the largest share of
// the time. Requests that come faster would wait for it first. It returns false without any stage.
func Limiting(stages []Stage) (Stage, bool) {
	var most Stage
	for _, s := range stages {
		if most.Model == "" || s.Utilization() > most.Utilization() {
			most = s
		}
	}
	return most, most.Model != ""
}

// Serving is a stage with its number of instances.
type Serving struct {
	Model     string
	Instances int
}

// Stages returns what the windows show of the stages of a pipeline; nil if they have no statistics of them.
func Stages(m measure.Measurement, serving []Serving) []Stage {
	var list []Stage
	for _, p := range serving {
		var server measure.ServerStats
		var busy, duration time.Duration
		requests, isKnown := 0, false
		for _, w := range m.Windows {
			own, has := w.Stage(p.Model)
			isKnown = isKnown || has
			server, busy = plus(server, own), busy+own.InstanceTime()
			duration, requests = duration+w.Duration, requests+w.Requests
		}
		if !isKnown || duration <= 0 {
			return nil
		}
		s := Stage{Model: p.Model, Instances: max(p.Instances, 1), Busy: busy.Seconds() / duration.Seconds(), MeanBatch: server.MeanBatch()}
		if requests > 0 {
			s.Calls = float64(server.Requests) / float64(requests)
		}
		if server.Requests > 0 {
			s.Queue = server.Queue.Seconds() / float64(server.Requests)
			s.Compute = server.Compute().Seconds() / float64(server.Requests)
		}
		list = append(list, s)
	}
	return list
}

// Busy returns the busy instances of all stages.
func Busy(stages []Stage) float64 {
	sum := 0.0
	for _, s := range stages {
		sum += s.Busy
	}
	return sum
}
