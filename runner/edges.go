package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"tuner/measure"
	"tuner/runner/meter"
)

// edges collects the readings of a trial: before the ramp, at the first window's beginning, at each window's end.
type edges struct {
	meter *meter.Meter
	list  []meter.Reading
}

// openEdges begins to look at a pool's engine, until close. A metrics page that cannot be read just now is no failure of the engine's: the
// trial's windows lack what it would tell.
func openEdges(ctx context.Context, p *pool, model string, o Options) *edges {
	pid := p.engine.PID()
	m, err := meter.Open(ctx, meter.Options{
		Control: p.control, Model: model, PID: pid, Remote: o.Elsewhere, GPUs: !o.Elsewhere,
		Metrics: o.Metrics, MachineMemory: pid == 0 && o.Metrics != "", Timeout: o.Patience,
	})
	if err != nil && ctx.Err() == nil {
		o.Log.Warn("the trial goes on without what the metrics page tells", "cause", err)
	}
	return &edges{meter: m}
}

func (s *edges) close() { s.meter.Close() }

// add looks at everything. An error says that the engine gave no statistics.
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

// memory is the most that was seen since the first reading, in bytes; 0 unknown.
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

// complete adds to the load's windows what the readings tell; their Start is moved by offset.
func (s *edges) complete(windows []measure.Window, offset time.Duration) []measure.Window {
	moved := slices.Clone(windows)
	for i := range moved {
		moved[i].Start += offset
	}
	return meter.Fill(moved, s.list[1:])
}

// rampExecutions is the rate at which the model was executed from before the ramp to the first window's beginning, per
// second.
func (s *edges) rampExecutions() float64 {
	from, to := s.list[0], s.list[1]
	return float64(meter.Served(from, to).Executions) / to.At.Sub(from.At).Seconds()
}
