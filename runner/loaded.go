package runner

import (
	"context"
	"errors"
	"fmt"

	"tuner/engine/api"
)

// Loaded launches engines that have models of the repository loaded by their own config.pbtxt, as a
// deployed server has. A Job without a Config measures them unchanged.
type Loaded struct {
	Launcher Launcher
	Dial     Dial
	Models   []string
}

// Launch implements Launcher. It also blocks until the models are loaded. A model that is refused
// is an error with the engine's message.
func (l Loaded) Launch(ctx context.Context, s Server) (Engine, error) {
	engine, err := l.Launcher.Launch(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := l.load(ctx, engine.Address()); err != nil {
		engine.Stop(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("cannot serve %q: %w", s.Repository, err)
	}
	return engine, nil
}

func (l Loaded) load(ctx context.Context, address api.Announcement) error {
	ctx, cancel := context.WithTimeoutCause(ctx, defaultLoadTimeout, &overdueError{"loading the models", defaultLoadTimeout})
	defer cancel()
	client, err := l.Dial(address)
	if err != nil {
		return err
	}
	for _, model := range l.Models {
		if err == nil {
			err = causeOr(ctx, client.LoadModel(ctx, model, ""))
		}
	}
	return errors.Join(err, client.Close())
}
