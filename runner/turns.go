package runner

import (
	"context"

	"tuner/measure"
)

// Turner measures jobs on an engine process that it keeps: a Runner.
type Turner interface {
	// Measure blocks until the windows are there or the context ends. An error ends the turns; what is wrong with the engine is a failure in the
	// measurement.
	Measure(ctx context.Context, job Job) (measure.Measurement, error)
	Pause() // keeps the engine from using the CPU until it is measured again
}

// Seat is one of those that take turns: an engine, and the job of a turn. Where the job is Fresh, its first turn is on a process launched for it.
type Seat struct {
	Turner Turner
	Job    Job
}

// Turns are seats measured in turn, in the order A B C, C B A, A B C, …: what changes slowly on the machine hits all alike. The engine whose turn
// it is not is paused.
type Turns struct {
	Rounds    int  // how often each seat has its turn
	Windows   int  // of a turn; a single one is short (Job.Turn), others are as long as any
	Backwards bool // the last seat comes first
	Strict    bool // the first failure ends the turns of all; else the other seats go on
}

// Take returns what each seat's windows yielded, in order of time. It blocks until then, or until the context ends.
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
	return taken, nil
}

// join adds a turn's measurement to those of the turns before it. A failure leaves no figures.
func join(before, m measure.Measurement) measure.Measurement {
	before.Windows = append(before.Windows, m.Windows...)
	before.Memory = max(before.Memory, m.Memory)
	before.Launch, before.Failure, before.Times = m.Launch, m.Failure, before.Times.Add(m.Times)
	return before
}
