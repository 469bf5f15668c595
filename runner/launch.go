package runner

import (
	"context"

	"tuner/engine/api"
	"tuner/model/isolation"
)

// Server says which server to launch.
type Server struct {
	Repository string // folder of the model repository
	Library    string // ONNX Runtime library
	// Policies are the cores and the memory of instances whose groups name one of them
	// (isolation.Bind). Without any, instances work where the process may.
	Policies []isolation.Policy
}

// PolicyFlags returns the flags that define the server's host policies. They are the same for the bundled
// engine and for a tritonserver.
func (s Server) PolicyFlags() []string { return isolation.Flags(s.Policies) }

// Launcher starts engines.
type Launcher interface {
	// Launch starts an engine on a model repository, without a loaded model, and returns when it
	// serves. It blocks until then or until the context ends. A *StartError means that the engine
	// did not become ready, which is a result. Any other error ends the campaign.
	Launch(ctx context.Context, s Server) (Engine, error)
}

// Engine is a running server. Any goroutine may call its methods.
type Engine interface {
	Address() api.Announcement
	// PID of its process; 0: unknown, so that it has no CPU and memory figures
	PID() int
	Done() <-chan struct{} // closed when it has ended, by itself or by Stop
	Exit() Exit            // how it ended; valid once Done is closed
	LastWords() string     // the last lines of its log; "": unknown
	// Stop asks the engine to end, and returns when it has ended. If the context ends, it kills the
	// engine at once. It may be called again.
	Stop(ctx context.Context)
}

// Exit describes the end of an engine.
type Exit struct {
	Text        string // "exit status 1", "signal: killed"
	OutOfMemory bool   // the kernel killed it since memory ran out
	InGroup     bool   // the kernel counts that kill in the engine's control group
}

// StartError is the reason why an engine did not become ready.
type StartError struct{ Reason string }

func (e *StartError) Error() string { return "cannot start engine: " + e.Reason }
