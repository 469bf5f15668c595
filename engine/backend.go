package engine

import (
	"context"

	"tuner/engine/hostpolicy"
	"tuner/engine/session"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Backend runs models. Its methods are safe for concurrent use.
type Backend interface {
	// NewSession makes one instance of a model ready to run. config may still lack inputs and
	// outputs: the session's IO completes it. An error that is not an *Error counts as Internal.
	NewSession(ctx context.Context, files ModelFiles, config *modelconfig.Config, in Instance) (Session, error)
}

// Instance is the place where an instance of a model runs.
type Instance struct {
	Number int // of the instance, from 0 in each version of a model
	OnGPU  bool
	GPU    int // number of the GPU, if OnGPU
	// Policy has been applied to the thread that calls NewSession, and will be applied to the one
	// that calls Execute. The backend's own threads must stay within it.
	Policy hostpolicy.Policy
	limit  *configpb.ModelRateLimiter // of its group
}

// ModelFiles locates the files of one version of a model.
type ModelFiles struct {
	Name    string
	Version int64
	Path    string // the model file, external data lies beside it; "" if the backend reads none
}

// What a backend makes and gets, under one roof.
type (
	// Session is one instance of a model.
	Session = session.Session
	// ApartSession is a Session that runs the requests of a batch each by itself.
	ApartSession = session.ApartSession
	// Apart is one request of a batch for an ApartSession.
	Apart = session.Apart
	// Sharing is a Session that further instances may use too.
	Sharing = session.Sharing
	// Batch is the input of one execution.
	Batch = session.Batch
	// BatchInput is one input of a batch.
	BatchInput = session.BatchInput
	// Result is the outcome of a batch.
	Result = session.Result
)
