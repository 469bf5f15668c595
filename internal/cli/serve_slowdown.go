//go:build !noengine

package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tuner/engine"
	"tuner/modelconfig"
)

// slowdown is the value of serve's hidden option --test-slowdown: work that is added to executions, so that a gate has a regression of a known
// size to find. FACTOR, or FACTOR@SHARE of the executions: 1.05, 5@2%.
type slowdown struct {
	factor float64 // of an execution's time; 0 and 1: none
	share  float64 // of the executions
}

func (s *slowdown) String() string {
	if s.factor == 0 {
		return ""
	}
	return fmt.Sprintf("%g@%g%%", s.factor, 100*s.share)
}

// Type implements pflag.Value.
func (s *slowdown) Type() string { return "slowdown" }

// Set implements pflag.Value.
func (s *slowdown) Set(text string) error {
	factor, part, hasPart := strings.Cut(text, "@")
	f, err := strconv.ParseFloat(factor, 64)
	of := 1.0
	if err == nil && hasPart {
		of, err = share("--test-slowdown", part)
	}
	if err != nil || !(f >= 1 && f <= 1000) || !(of > 0) {
		return fmt.Errorf("%q is no slowdown: write FACTOR from 1, or FACTOR@SHARE such as 5@2%%", text)
	}
	s.factor, s.share = f, of
	return nil
}

// of slows the sessions of a backend down.
func (s *slowdown) of(b engine.Backend) engine.Backend {
	if s.factor <= 1 {
		return b
	}
	return slowBackend{b, *s}
}

type slowBackend struct {
	engine.Backend
	by slowdown
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
	by  slowdown
	due float64 // executions that are to be slow, less those that were
}

// Execute implements engine.Session: it keeps a core busy for as much longer as the execution shall take.
func (s *slowSession) Execute(b *engine.Batch) (engine.Result, error) {
	r, err := s.Session.Execute(b)
	if err != nil {
		return r, err
	}
	if s.due += s.by.share; s.due < 1 {
		return r, nil
	}
	s.due--
	begin := time.Now()
	more := time.Duration((s.by.factor - 1) * float64(r.Computed.Sub(r.Gathered)))
	for time.Since(begin) < more { // busy, as a model that computes more would be
	}
	r.Computed = r.Computed.Add(time.Since(begin))
	return r, nil
}
