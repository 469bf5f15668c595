package serve

import (
	"context"
	"fmt"
	"log/slog"

	"tuner/adaptive"
	"tuner/adaptive/steering"
	"tuner/engine"
	"tuner/internal/exit"
)

// steered is the engine of this process as a server whose configuration changes.
type steered struct{ *engine.Server }

// Arrived implements steering.Server.
func (s steered) Arrived(_ context.Context, model string) (uint64, error) {
	n, serves := s.Server.Arrived(model)
	if !serves {
		return n, fmt.Errorf("its model %q is not served: name a repository that has it", model)
	}
	return n, nil
}

// newWheel makes what changes the configuration of the table's model; nil without a table, or if changing
// does not pay. The models of the start have been loaded.
func newWheel(ctx context.Context, s *engine.Server, t *adaptive.Table, log *slog.Logger) (*steering.Wheel, error) {
	if t == nil {
		return nil, nil
	}
	w, err := steering.New(ctx, steered{s}, t, log)
	if err != nil {
		return nil, exit.Usagef("--adaptive: %v", err)
	}
	return w, nil
}
