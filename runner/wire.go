package runner

import (
	"context"

	"tuner/engine/api"
	"tuner/load"
)

// Wire is how the runner talks to engines: the inference protocol over HTTP or gRPC.
type Wire interface {
	// Connect makes a connection for what is not inference.
	Connect(address api.Announcement) (Control, error)
	// Dial makes the inference connection of a worker, which sends the job's requests in turn, beginning with another one
	// than its neighbours.
	Dial(ctx context.Context, address api.Announcement, job Job, worker int) (load.Sender, error)
}

// Control is a connection for what is not inference. Its methods are called one at a time.
type Control interface {
	// LoadModel loads a model with a configuration (JSON) instead of the repository's, and returns when it is ready.
	LoadModel(ctx context.Context, model, config string) error
	Statistics(ctx context.Context, model string) (api.Statistics, error)
	Close() error
}
