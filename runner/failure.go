package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tuner/engine/api"
	"tuner/measure"
	"tuner/runner/load"
)

// loadError means that the engine refused to load the model.
type loadError struct{ cause error }

// Error returns the engine's own message, if there is one.
func (e *loadError) Error() string {
	var answered *api.StatusError
	if errors.As(e.cause, &answered) {
		return strings.TrimRight(answered.Text, "; \n")
	}
	return e.cause.Error()
}

// requestError means that the job's requests cannot be sent. The engine is not the cause.
type requestError struct{ cause error }

func (e *requestError) Error() string { return e.cause.Error() }

// overdueError means that an operation did not end in time.
type overdueError struct {
	what   string
	waited time.Duration
}

func (e *overdueError) Error() string { return fmt.Sprintf("%s took more than %v", e.what, e.waited) }

// exitDelay is the time that a failing engine has to exit before its failure is explained without
// an exit status.
const exitDelay = 500 * time.Millisecond

// explain returns the failure of the engine that ended a trial. It names the model that failed, if
// there are several and that is known. If the engine is not the cause, it returns an error.
func (r *Runner) explain(ctx context.Context, err error) (*measure.Failure, error) {
	var part *load.PartError
	if !errors.As(err, &part) {
		return r.explained(ctx, err)
	}
	failure, other := r.explained(ctx, part.Cause)
	if errors.As(part.Cause, new(*load.LostError)) { // the connections of all models are lost then
		return failure, other
	}
	return failureOf(part.Model, failure), other
}

// explained is explain without the model's name.
func (r *Runner) explained(ctx context.Context, err error) (*measure.Failure, error) {
	failure, err := r.explainEngine(ctx, err)
	return r.nameMemory(failure), err
}

func (r *Runner) explainEngine(ctx context.Context, err error) (*measure.Failure, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var start *StartError
	if errors.As(err, &start) {
		return &measure.Failure{Stage: measure.StageStart, Reason: start.Reason}, nil
	}
	var request *requestError
	if r.pool == nil || errors.As(err, &request) {
		return nil, err
	}
	var memory *memoryError
	if errors.As(err, &memory) {
		return &measure.Failure{Stage: measure.StageMemory, Reason: memory.Error()}, nil
	}
	engine := r.pool.engine
	if hasExited(engine) {
		return exitFailure(engine), nil
	}
	return answerFailure(err, engine.LastWords()), nil
}

// answerFailure explains the failure of a trial on an engine that still runs.
func answerFailure(err error, words string) *measure.Failure {
	var (
		model   *loadError
		refused *load.RefusedError
		hung    *load.HungError
		overdue *overdueError
	)
	switch {
	case errors.As(err, &model):
		return &measure.Failure{Stage: measure.StageLoad, Reason: err.Error()}
	case errors.As(err, &refused):
		return &measure.Failure{Stage: measure.StageErrors, Reason: err.Error()}
	case errors.As(err, &hung), errors.As(err, &overdue):
		return &measure.Failure{Stage: measure.StageHang, Reason: WithLastWords(err.Error(), words)}
	}
	return &measure.Failure{Stage: measure.StageErrors, Reason: WithLastWords(err.Error(), words)}
}

// hasExited reports whether an engine has ended. An engine whose connections just broke gets
// exitDelay for it.
func hasExited(e Engine) bool {
	select {
	case <-e.Done():
		return true
	case <-time.After(exitDelay):
		return false
	}
}

// exitFailure returns the failure of an engine that ended.
func exitFailure(e Engine) *measure.Failure {
	exit := e.Exit()
	if exit.OutOfMemory {
		where := ""
		if exit.InGroup {
			where = " in its control group (the container)"
		}
		return &measure.Failure{Stage: measure.StageMemory, Reason: "the system killed the engine since memory ran out" + where + " (" + exit.Text + ")"}
	}
	return &measure.Failure{Stage: measure.StageCrash, Reason: WithLastWords("the engine ended by itself ("+exit.Text+")", e.LastWords())}
}

// answeredNone returns a failure if no request of the windows succeeded. Without a failed one, that
// is no failure in an open loop, where it occurs at a low rate. In a closed loop the windows are too
// short for one request. Package load has already noticed an engine that hangs.
func answeredNone(windows []measure.Window, l measure.Load) *measure.Failure {
	failed, first := 0, ""
	var length time.Duration
	for _, w := range windows {
		length += w.Duration
		if w.Requests > 0 {
			return nil
		}
		failed += w.Errors
		if first == "" {
			first = w.FirstError
		}
	}
	if failed == 0 && (l.Concurrency == 0 || len(windows) == 0) {
		return nil
	}
	if failed == 0 {
		return &measure.Failure{Stage: measure.StageHang, Reason: fmt.Sprintf("no request was answered in %v with %d in flight; "+
			"set a longer search.window, or a lower load", length.Round(time.Millisecond), l.Concurrency)}
	}
	return &measure.Failure{Stage: measure.StageErrors, Reason: fmt.Sprintf("all %d requests failed, the first with: %s", failed, first)}
}

// WithLastWords adds the last output of an engine to a reason.
func WithLastWords(reason, words string) string {
	if words == "" {
		return reason
	}
	return reason + "; its last output:\n" + words
}
