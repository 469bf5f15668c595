package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"tuner/measure"
	"tuner/runner/meter"
)

// edges collects the readings of a trial: before the ramp, at the beginning of the first window,
// and at the end of each window.
type edges struct {
	meter *meter.Meter
	list  []meter.Reading
}

// openEdges starts to sample a pool's engine, until close. A metrics page that cannot be read now
// is not a failure of the engine: the windows lack its figures.
func openEdges(ctx context.Context, p *pool, parts []Job, o Options) *edges {
	var models []meter.Subject
	for _, part := range parts {
		s := meter.Subject{Model: meter.Model{Name: part.Model}}
		for _, stage := range part.Stages {
			s.Together = append(s.Together, meter.Model{Name: stage.Model})
		}
		models = append(models, s)
	}
	pid := p.engine.PID()
	m, err := meter.Open(ctx, meter.Options{
		Control: p.control, Models: models, PID: pid, Remote: o.Elsewhere, GPUs: !o.Elsewhere,
		Metrics: o.Metrics, MachineMemory: pid == 0 && o.Metrics != "", Timeout: o.Patience,
	})
	if err != nil && ctx.Err() == nil {
		o.Log.Warn("the trial continues without the figures of the metrics page", "cause", err)
	}
	return &edges{meter: m}
}

func (s *edges) close() { s.meter.Close() }

// add takes a reading. It fails if the engine does not return its statistics.
func (s *edges) add(ctx context.Context) error {
	reading, err := s.meter.Read(ctx)
	var late *meter.OverdueError
	if errors.As(err, &late) {
		return &overdueError{"reading the statistics", late.After}
	}
	if err != nil {
		return err
	}
	s.list = append(s.list, reading)
	return nil
}

// memory returns the largest memory since the first reading in bytes. 0: unknown.
func (s *edges) memory() int64 {
	most := int64(0)
	for _, r := range s.list[1:] {
		most = max(most, r.Memory)
	}
	return most
}

// split divides a trial's time from begin to end into warm-up and windows.
func (s *edges) split(begin, end time.Time) (warmUp, windows time.Duration) {
	if len(s.list) < 2 {
		return end.Sub(begin), 0
	}
	return s.list[1].At.Sub(begin), end.Sub(s.list[1].At)
}

// complete adds the figures of the readings to the windows of a model, by its number, and moves their
// Start by offset.
func (s *edges) complete(model int, windows []measure.Window, offset time.Duration) []measure.Window {
	moved := slices.Clone(windows)
	for i := range moved {
		moved[i].Start += offset
	}
	return meter.Fill(model, moved, s.list[1:])
}

// rampExecutions returns the executions of a model per second, by its number, from before the ramp to
// the beginning of the first window.
func (s *edges) rampExecutions(model int) float64 {
	from, to := s.list[0], s.list[1]
	return float64(meter.Served(from.Of(model), to.Of(model)).Executions) / to.At.Sub(from.At).Seconds()
}
