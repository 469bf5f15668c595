package exit_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"tuner/internal/exit"
)

// infeasible is an error whose type sets an exit code.
type infeasible struct{}

func (infeasible) Error() string { return "nothing fits" }
func (infeasible) ExitCode() int { return exit.Infeasible }

func TestCodeOf(t *testing.T) {
	t.Parallel()
	plain, usage := errors.New("broken"), exit.Usagef("no file %q", "a")
	full := &fs.PathError{Op: "write", Path: "a", Err: fs.ErrPermission}
	for name, tt := range map[string]struct {
		err  error
		want int
	}{
		"no error":             {nil, exit.OK},
		"any error":            {plain, exit.Failure},
		"usage":                {usage, exit.Usage},
		"wrapped":              {fmt.Errorf("gate: %w", usage), exit.Usage},
		"given":                {exit.With(exit.Infeasible, plain), exit.Infeasible},
		"nothing is given":     {exit.With(exit.Infeasible, nil), exit.OK},
		"the outer code":       {exit.With(exit.Interrupted, usage), exit.Interrupted},
		"joined":               {errors.Join(plain, usage), exit.Usage},
		"the first one's code": {exit.Leading(plain, usage), exit.Failure},
		"by its type":          {fmt.Errorf("export: %w", infeasible{}), exit.Infeasible},
		"a file":               {exit.OfFiles(fmt.Errorf("cannot write: %w", full)), exit.Usage},
		"no file":              {exit.OfFiles(plain), exit.Failure},
	} {
		if got := exit.CodeOf(tt.err); got != tt.want {
			t.Errorf("%s: exit code %d, want %d", name, got, tt.want)
		}
	}
}

func TestOrInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	plain := errors.New("broken")
	if err := exit.OrInterrupted(ctx, plain); err != plain {
		t.Errorf("before the interruption: %v", err)
	}
	cancel()
	if err := exit.OrInterrupted(ctx, plain); exit.CodeOf(err) != exit.Interrupted || !errors.Is(err, plain) {
		t.Errorf("after the interruption: %v with exit code %d", err, exit.CodeOf(err))
	}
}

// Unmet limits of a model do not stop the others. Any other error does, and gives the exit code.
func TestSeveral(t *testing.T) {
	t.Parallel()
	first, second, broken := exit.With(exit.Infeasible, errors.New("first")), infeasible{}, errors.New("broken")
	var models exit.Several
	for _, err := range []error{nil, first, second} {
		if stop := models.Add(err); stop != nil {
			t.Errorf("%v stops the others", err)
		}
	}
	if err := models.Unmet(); exit.CodeOf(err) != exit.Infeasible || !errors.Is(err, first) || !errors.Is(err, second) {
		t.Errorf("unmet are %v, exit code %d", err, exit.CodeOf(err))
	}
	if err := models.Add(broken); exit.CodeOf(err) != exit.Failure || !errors.Is(err, broken) || !errors.Is(err, first) {
		t.Errorf("stopped by %v, exit code %d", err, exit.CodeOf(err))
	}
	if err := new(exit.Several).Unmet(); err != nil {
		t.Errorf("without a model: %v", err)
	}
}
