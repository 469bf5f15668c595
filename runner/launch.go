package runner

import (
	"context"

	"tuner/engine/api"
)

// Launcher starts engines.
type Launcher interface {
	// Launch starts an engine on a model repository, with no model loaded, and returns when it serves. It blocks until
	// then or until the context ends. A *StartError says that the engine did not become ready, which is a result; any
	// other error is the campaign's own.
	Launch(ctx context.Context, repository, library string) (Engine, error)
}

// Engine is a running server. Its methods may be called from any goroutine.
type Engine interface {
	Address() api.Announcement
	PID() int              // of its process, 0 when unknown: then it has no CPU and memory figures
	Done() <-chan struct{} // closed when it has ended, by itself or by Stop
	Exit() Exit            // how it ended, once Done is closed
	LastWords() string     // the last lines of its log, "" when unknown
	// Stop ends it, first politely, and returns when it is gone. When the context ends it is killed at once. It may be
	// called again.
	Stop(ctx context.Context)
}

// Exit is how an engine ended.
type Exit struct {
	Text        string // "exit status 1", "signal: killed"
	OutOfMemory bool   // killed by the kernel for want of memory
}

// StartError says why an engine did not become ready.
type StartError struct{ Reason string }

func (e *StartError) Error() string { return "cannot start engine: " + e.Reason }
