package serve

import (
	"context"
	"log/slog"
	"os"

	"tuner/engine"
	"tuner/engine/flags"
	"tuner/engine/mirror"
	"tuner/engine/poll"
	"tuner/internal/exit"
)

// follow fetches the models of repositories in stores, unless requests do, and makes what follows the
// repositories, nil if nothing does. It comes before the models of the start are loaded, so that the
// poller sees what has changed since.
func follow(ctx context.Context, o *flags.Options, s *engine.Server, m *mirror.Repositories, log *slog.Logger) (*poll.Poller, error) {
	switch {
	case o.PollInterval() > 0:
		return poll.New(ctx, mirrored{s, m}, o.LoadThreads(), log), nil // its first scan fetches
	case o.IsExplicit():
		return nil, nil
	}
	return nil, m.FetchAll(ctx)
}

// mirrored is a server whose repositories in stores are looked at before each scan.
type mirrored struct {
	*engine.Server
	mirror *mirror.Repositories
}

// Scan implements poll.Server.
func (m mirrored) Scan(ctx context.Context) (map[string]string, error) {
	if err := m.mirror.FetchAll(ctx); err != nil {
		return nil, err
	}
	return m.Server.Scan(ctx)
}

// openMirror makes folders for the repositories that lie in stores, and has the engine use them. nil:
// there are none.
func openMirror(ctx context.Context, o *engine.Options, log *slog.Logger) (*mirror.Repositories, error) {
	m, folders, err := mirror.Open(ctx, o.Repositories, os.Getenv, log)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if m != nil && o.Namespacing {
		return nil, exit.Leading(exit.Usagef("--model-namespacing is not supported with a repository in a store: leave the option out, or copy the repository"), m.Close())
	}
	o.Repositories = folders
	if m != nil && o.Explicit {
		o.Remote = m
	}
	return m, nil
}
