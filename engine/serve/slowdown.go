package serve

import (
	"context"
	"time"

	"tuner/engine"
	"tuner/engine/flags"
	"tuner/modelconfig"
)

// slowed slows the sessions of a backend down.
func slowed(b engine.Backend, by flags.Slowdown) engine.Backend {
	if by.Factor <= 1 {
		return b
	}
	return slowBackend{b, by}
}

type slowBackend struct {
	engine.Backend
	by flags.Slowdown
}

// NewSession implements engine.Backend.
func (b slowBackend) NewSession(ctx context.Context, files engine.ModelFiles, config *modelconfig.Config, in engine.Instance) (engine.Session, error) {
	session, err := b.Backend.NewSession(ctx, files, config, in)
	if err != nil {
		return nil, err
	}
	return &slowSession{Session: session, by: b.by}, nil
}

type slowSession struct {
	engine.Session
	by  flags.Slowdown
	due float64 // executions that are to be slow, less those that were
}

// Execute implements engine.Session: it keeps a core busy for the additional time of the execution.
func (s *slowSession) Execute(b *engine.Batch) (engine.Result, error) {
	r, err := s.Session.Execute(b)
	if err != nil {
		return r, err
	}
	if s.due += s.by.Share; s.due < 1 {
		return r, nil
	}
	s.due--
	begin := time.Now()
	more := time.Duration((s.by.Factor - 1) * float64(r.Computed.Sub(r.Gathered)))
	for time.Since(begin) < more { // busy, as a model that computes more would be
	}
	r.Computed = r.Computed.Add(time.Since(begin))
	return r, nil
}
