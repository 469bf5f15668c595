package record

import (
	"math"
	"time"

	"tuner/measure"
)

// NewPoint makes the record of a trial at a load.
func NewPoint(t Trial, level float64, m measure.Measurement) Point {
	p := Point{Trial: t.with(m), Level: level}
	for _, w := range m.Windows {
		if w.Requests > 0 {
			p.Windows = append(p.Windows, newWindow(w))
		}
	}
	if len(p.Windows) == 0 && p.Failure == nil {
		p.Failure = unanswered()
	}
	return p
}

// unanswered returns the failure of a trial in whose windows no request ended.
func unanswered() *measure.Failure {
	return &measure.Failure{Stage: measure.StageHang, Reason: "no request was answered within the windows"}
}

// NewService makes the record of a service trial. Its windows are those of the sizes, in their
// order.
func NewService(t Trial, concurrency int, sizes []int, m measure.Measurement) Service {
	s := Service{Trial: t.with(m), Concurrency: concurrency}
	for i, w := range m.Windows {
		if w.Requests == 0 || w.Server.Executions == 0 {
			continue
		}
		queue, input, infer, output := perRequest(w.Server)
		s.Batches = append(s.Batches, BatchFigure{Size: sizes[i], Requests: w.Requests, Executions: w.Server.Executions,
			Queue: queue, Input: input, Infer: infer, Output: output, Latency: latencies(w)})
	}
	if len(s.Batches) == 0 && s.Failure == nil {
		s.Failure = unanswered()
	}
	return s
}

// with fills in the measurement's data about its trial.
func (t Trial) with(m measure.Measurement) Trial {
	t.Launch, t.Times, t.Memory, t.Failure = m.Launch, m.Times, m.Memory, m.Failure
	return t
}

func newWindow(w measure.Window) Window {
	short := Window{Duration: w.Duration.Round(time.Microsecond), Errors: w.Errors, Latency: latencies(w), Executions: w.Server.Executions,
		CPU: w.EngineCPU.Round(time.Microsecond), ClientCPU: w.ClientCPU.Round(time.Microsecond), Steal: math.Round(w.Steal*1e4) / 1e4}
	short.Queue, short.Input, short.Infer, short.Output = perRequest(w.Server)
	for _, s := range w.Sub {
		short.Requests = append(short.Requests, s.Requests)
	}
	for _, f := range w.Flags {
		short.Flags = append(short.Flags, string(f))
	}
	return short
}

func latencies(w measure.Window) Sketch {
	parts := make([]measure.Histogram, len(w.Sub))
	for i, s := range w.Sub {
		parts[i] = s.Latency
	}
	all := measure.Merge(parts...)
	return NewSketch(func(level float64) float64 { return all.Quantile(level).Seconds() })
}

// perRequest returns the mean of each part of the requests' time in the server.
func perRequest(s measure.ServerStats) (queue, input, infer, output time.Duration) {
	mean := func(sum time.Duration) time.Duration {
		return (sum / time.Duration(max(s.Requests, 1))).Round(10 * time.Nanosecond)
	}
	return mean(s.Queue), mean(s.ComputeInput), mean(s.ComputeInfer), mean(s.ComputeOutput)
}
