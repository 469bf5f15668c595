package runner

import (
	"context"

	"tuner/measure"
)

// Turner measures jobs on an engine process that it keeps. Runner implements it.
type Turner interface {
	// Measure blocks until it has the windows or the context ends. An error ends the turns. A fault
	// of the engine is a failure in the measurement.
	Measure(ctx context.Context, job Job) (measure.Measurement, error)
	Pause() // keeps the engine from using the CPU until the next Measure
}

// Seat is an engine that takes turns, and the job of a turn. If the job is Fresh, its first turn is
// on a process launched for it.
type Seat struct {
	Turner Turner
	Job    Job
}

// Turns measures seats in turn, in the order A B C, C B A, A B C, and so on. So slow changes of the
// machine affect all alike. The engines whose turn it is not are paused.
type Turns struct {
	Rounds int // turns of each seat
	// windows of a turn; a single one is short (Job.Turn), others have the usual length
	Windows   int
	Backwards bool // begin with the last seat
	// the first failure ends the turns of all seats; otherwise the other seats continue
	Strict bool
}

// Take returns the measurement of each seat, with the windows in order of time. It blocks until all
// turns are over, or until the context ends. A turn may have no answer, if another one of its seat has.
func (t Turns) Take(ctx context.Context, seats []Seat) ([]measure.Measurement, error) {
	taken := make([]measure.Measurement, len(seats))
	for round := range t.Rounds {
		for k := range seats {
			i := k
			if (round%2 == 1) != t.Backwards {
				i = len(seats) - 1 - k
			}
			if taken[i].Failure != nil {
				continue
			}
			job := seats[i].Job
			job.Windows, job.Turn, job.Fresh = t.Windows, t.Windows == 1, job.Fresh && round == 0
			job.MayBeEmpty = true
			m, err := seats[i].Turner.Measure(ctx, job)
			if err != nil {
				return taken, err
			}
			seats[i].Turner.Pause()
			taken[i] = join(taken[i], m)
			if m.Failure != nil && t.Strict {
				return taken, nil
			}
		}
	}
	for i, s := range seats {
		if taken[i].Failure == nil {
			taken[i].Failure = s.Job.unanswered(taken[i].Windows)
		}
	}
	return taken, nil
}

// join adds a turn's measurement to those of earlier turns. With a failure there are no figures.
func join(before, m measure.Measurement) measure.Measurement {
	before.Windows = append(before.Windows, m.Windows...)
	before.Memory, before.Scale = max(before.Memory, m.Memory), max(before.Scale, m.Scale)
	before.Launch, before.Failure, before.Times = m.Launch, m.Failure, before.Times.Add(m.Times)
	return before
}
