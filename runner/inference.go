package runner

import (
	"cmp"
	"context"
	"errors"
	"time"

	"tuner/engine/api"
	"tuner/measure"
)

// InferenceJob names the model that an engine serves for an Inference.
type InferenceJob struct {
	Repository string // folder of the model repository that holds the model
	Library    string // ONNX Runtime library
	Model      string // name of the model
}

// Inference is an engine process that serves one model for its outputs, not for measurements: for
// comparisons of outputs, and for calibration. One goroutine at a time may call its methods.
type Inference struct {
	model    string
	engine   Engine
	client   api.Client
	patience time.Duration
}

// EngineError means that the engine did not start, refused the model or the request, or ended. It
// is a result about the model, not a failure of tuner.
type EngineError struct{ Failure measure.Failure }

func (e *EngineError) Error() string { return e.Failure.Reason }

// OpenInference launches an engine and loads the model. It blocks until the model is loaded, the
// context ends, or loading takes longer than o.LoadTimeout. An *EngineError means that the engine
// failed. The caller closes the Inference.
func OpenInference(ctx context.Context, o Options, job InferenceJob) (*Inference, error) {
	engine, err := o.Launcher.Launch(ctx, Server{Repository: job.Repository, Library: job.Library})
	if err != nil {
		var start *StartError
		if errors.As(err, &start) && ctx.Err() == nil {
			return nil, &EngineError{measure.Failure{Stage: measure.StageStart, Reason: start.Reason}}
		}
		return nil, err
	}
	// An execution provider may build its kernels in the first inference, which may take as long as
	// loading.
	i := &Inference{model: job.Model, engine: engine, patience: cmp.Or(o.LoadTimeout, defaultLoadTimeout)}
	if i.client, err = o.Dial(engine.Address()); err != nil {
		engine.Stop(context.WithoutCancel(ctx))
		return nil, err
	}
	if err := i.load(ctx); err != nil {
		err = i.explain(ctx, err)
		i.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return i, nil
}

func (i *Inference) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, i.patience, &overdueError{"loading the model", i.patience})
	defer cancel()
	if err := i.client.LoadModel(ctx, i.model, ""); err != nil {
		return causeOr(ctx, &loadError{err})
	}
	return nil
}

// Infer sends one request to the model, after it sets the model's name. It blocks until the outputs
// arrive, the context ends, or the engine takes longer than it may take to load the model. An
// *EngineError means that the engine failed. It may still answer other requests.
func (i *Inference) Infer(ctx context.Context, r api.InferRequest) ([]api.Tensor, error) {
	r.Model = i.model
	request, err := i.client.Encode(r)
	if err != nil {
		return nil, err
	}
	outputs, err := i.infer(ctx, request)
	if err != nil {
		return nil, i.explain(ctx, err)
	}
	return outputs, nil
}

func (i *Inference) infer(ctx context.Context, request *api.Encoded) ([]api.Tensor, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, i.patience, &overdueError{"an inference", i.patience})
	defer cancel()
	answer, err := i.client.Infer(ctx, request)
	if err != nil {
		return nil, causeOr(ctx, err)
	}
	return answer.Outputs()
}

// Close asks the engine to stop. If the context has ended, it kills the engine at once. It may be
// called again.
func (i *Inference) Close(ctx context.Context) {
	_ = i.client.Close() // the engine ends anyway
	i.engine.Stop(ctx)
}

// explain returns an *EngineError for an error of a call, or the cause if the caller's own context
// ended.
func (i *Inference) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if hasExited(i.engine) {
		return &EngineError{*exitFailure(i.engine)}
	}
	var answered *api.StatusError
	if errors.As(err, &answered) { // the error has the engine's message, so its log adds nothing
		return &EngineError{measure.Failure{Stage: measure.StageErrors, Reason: answered.Text}}
	}
	return &EngineError{*answerFailure(err, i.engine.LastWords())}
}

// causeOr returns the cause of the context's end, or err if it has not ended.
func causeOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
