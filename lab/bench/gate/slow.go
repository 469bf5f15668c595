package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"tuner/engine"
	"tuner/engine/flags"
	"tuner/engine/serve"
	"tuner/model/modelconfig"
)

// asSlow is the first argument that makes this program a slow engine. The slowness and the
// arguments of `tuner` follow.
const asSlow = "slow"

// slowness is additional work in executions, so that a gate has a regression of a known size to
// find.
type slowness struct {
	factor float64 // of an execution's time; 0: unchanged
	share  float64 // of the executions that take longer
}

// args returns the arguments that readSlowness reads.
func (s slowness) args() []string {
	return []string{strconv.FormatFloat(s.factor, 'g', -1, 64), strconv.FormatFloat(s.share, 'g', -1, 64)}
}

// readSlowness reads a slowness, and returns the arguments after it.
func readSlowness(args []string) (slowness, []string, error) {
	if len(args) < 2 {
		return slowness{}, nil, errors.New("a factor and a share are needed")
	}
	factor, err := strconv.ParseFloat(args[0], 64)
	if err != nil || !(factor >= 1) {
		return slowness{}, nil, fmt.Errorf("%q is no factor from 1", args[0])
	}
	share, err := strconv.ParseFloat(args[1], 64)
	if err != nil || !(share > 0 && share <= 1) {
		return slowness{}, nil, fmt.Errorf("%q is no share above 0", args[1])
	}
	return slowness{factor, share}, args[2:], nil
}

// slowEngine is `tuner serve` with slower executions.
func slowEngine(ctx context.Context, args []string, _, messages io.Writer) error {
	by, rest, err := readSlowness(args)
	if err != nil {
		return err
	}
	if len(rest) == 0 || rest[0] != "serve" {
		return fmt.Errorf("cannot do %q: a slow engine can only serve", rest)
	}
	o, set := &flags.Options{}, pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.Add(set)
	if err := set.Parse(rest[1:]); err != nil {
		return err
	}
	return serve.RunWith(ctx, messages, o, by.of)
}

// of slows down the sessions of a backend.
func (s slowness) of(b engine.Backend) engine.Backend { return slowBackend{b, s} }

type slowBackend struct {
	engine.Backend
	by slowness
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
	by  slowness
	due float64 // number of executions that should have been slow, minus those that were
}

// Execute implements engine.Session: it keeps a core busy for the additional time of the execution.
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
	for time.Since(begin) < more { // busy, like a model that computes more
	}
	r.Computed = r.Computed.Add(time.Since(begin))
	return r, nil
}
