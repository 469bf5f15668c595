package served

import (
	"context"
	"errors"
	"time"

	"tuner/engine/api"
	"tuner/engine/classification"
	"tuner/engine/ensemble"
	"tuner/engine/fault"
	"tuner/engine/ragged"
	"tuner/engine/request"
	"tuner/engine/scheduler"
	"tuner/engine/sequence"
	"tuner/engine/state"
	"tuner/engine/statistics"
	"tuner/model/modelconfig"
)

// Model is one version of a model that is, or was, ready to serve. It is immutable, except for its
// counters.
type Model struct {
	Name         string
	Namespace    string // its repository; "": there are no namespaces
	Version      int64
	Config       *modelconfig.Config
	Signature    *request.Signature
	Stats        *statistics.Statistics
	Added        *state.Spec  // inputs that the server adds to requests; nil: the requests form no sequences
	Ragged       *ragged.Spec // nil: the requests of a batch have one shape
	Pool         *Pool
	LoadDuration time.Duration
	Labels       map[string][]string // of the outputs' elements, for classification

	composed *composed // nil except for an ensemble
	answers  *answers  // nil: none are cached
}

// With returns the model on the same sessions with another configuration, which differs in the batching alone,
// and its counters. It has no cached answers yet.
func (m *Model) With(c *modelconfig.Config, stats *statistics.Statistics) *Model {
	out := *m
	out.Config, out.Signature, out.Stats, out.answers = c, request.NewSignature(c), stats, nil
	return &out
}

// job is a request on its way through the scheduler.
type job struct {
	model    *Model
	request  *request.Request
	prepared request.Prepared
	started  time.Time

	response *Response
	err      error
	span     statistics.Span // of its execution, or of those of an ensemble's steps
}

// waiter waits until a scheduler has had a request executed (nil), or has refused it. Cancel takes it out
// of the queue, before Wait.
type waiter interface {
	Wait(ctx context.Context) error
	Cancel(cause error)
}

// Pending is a request that has been accepted. The caller must call Wait once.
type Pending struct {
	job     job
	ticket  waiter  // nil if no scheduler has it
	charged int     // charged to the request's account: see Model.needs
	lookUp  *lookUp // nil: the model has no cache
	// of an ensemble: the request on its way, and its end; nil otherwise
	flow *ensemble.Flow
	done chan struct{}
}

// Start checks and queues a request. The caller must have entered the pool. Wait leaves it, or Start
// on error. n hears when Wait no longer blocks; nil: nobody.
func (m *Model) Start(r *request.Request, n scheduler.Notifier) (*Pending, error) {
	p := &Pending{job: job{model: m, request: r, started: time.Now()}}
	j := &p.job
	var err error
	if j.prepared, err = m.Signature.Prepare(r); err == nil && m.Added != nil {
		err = m.checkSequence(r)
	}
	if err != nil {
		m.Pool.users.Done()
		return nil, err
	}
	r.Trace.Begin(m.Name, m.Version, r.ID, j.started)
	traceInputs(r)
	if m.answers != nil && p.find() {
		if n != nil {
			n.Notify()
		}
		return p, nil
	}
	if p.charged = m.needs(j); !r.Memory.Take(p.charged) {
		m.Pool.users.Done()
		return nil, fault.Full(r.Memory)
	}
	if m.composed != nil {
		m.composed.begin(p, n)
		return p, nil
	}
	if m.Pool.sequences != nil {
		p.ticket, err = m.enqueueInSequence(j, n)
	} else {
		p.ticket, err = m.Pool.scheduler.Enqueue(scheduler.Item[*job]{
			Value: j, Rows: j.prepared.Rows, Shape: j.prepared.Shape, Priority: r.Priority, Timeout: r.Timeout, Notifier: n,
		})
	}
	if err != nil {
		m.Pool.users.Done()
		r.Memory.Give(p.charged)
		return nil, refusal(m, r, err)
	}
	return p, nil
}

// Wait blocks until the request is answered. If ctx ends while the request is queued, it leaves the
// queue. If it is being executed, Wait waits for it. The caller releases the Response.
func (p *Pending) Wait(ctx context.Context) (*Response, error) {
	defer p.job.model.Pool.users.Done()
	defer p.job.request.Memory.Give(p.charged)
	defer p.job.traceAnswer()
	switch {
	case p.done != nil:
		p.await(ctx)
	case p.ticket == nil: // a cached answer
		p.job.classify()
		return p.job.response, p.job.err
	default:
		if err := p.ticket.Wait(ctx); err != nil {
			return nil, p.job.model.giveUp(&p.job, err)
		}
	}
	if p.lookUp != nil && p.job.err == nil {
		p.keep()
	}
	p.job.classify()
	return p.job.response, p.job.err
}

// classify puts classes in place of the outputs that are wanted so.
func (j *job) classify() {
	if j.err != nil || len(j.request.Classes) == 0 {
		return
	}
	r := j.response
	if r.IsComposed { // so far its outputs are charged to the steps alone
		if !j.request.Memory.Take(request.DataBytes(r.Outputs)) {
			j.withdraw(fault.Full(j.request.Memory))
			return
		}
		r.account = j.request.Memory
	}
	r.lends = nil // the outputs that the classes replace are kept as well
	var err error
	r.Outputs, err = classification.Replace(r.Outputs, j.request, j.model.Signature.MaxBatch > 0, j.model.Labels)
	if err != nil {
		j.withdraw(err)
	}
}

// full refuses a request whose answer has no room. The last one of a sequence cannot be sent again: its sequence ended
// when it came.
func (j *job) full() error {
	if j.model.Added != nil && j.request.End {
		return fault.Errorf(fault.Exhausted, "%s, from the start of sequence %s, which has ended", fault.Full(j.request.Memory), j.request.Sequence)
	}
	return fault.Full(j.request.Memory)
}

// withdraw fails a request. It releases the response if there is one already. Nobody may see it any more.
func (j *job) withdraw(err error) {
	if j.response != nil {
		j.response.Release()
	}
	j.response, j.err = nil, err
}

// refusal returns the error for a request that the scheduler did not accept. As in Triton
// (InferenceRequest::Run) no statistics count it.
func refusal(m *Model, r *request.Request, why error) error {
	switch {
	case errors.Is(why, scheduler.ErrQueueFull):
		return fault.Errorf(fault.Unavailable, "%s Exceeds maximum queue size", request.IDPrefix(r.ID))
	case errors.Is(why, errRows):
		return fault.Errorf(fault.InvalidArgument, "inference request to model '%s' must specify batch-size 1 due to requirements of sequence batcher", m.Name)
	case errors.Is(why, sequence.ErrNoID):
		return fault.Errorf(fault.InvalidArgument, "inference request to model '%s' must specify a non-zero or non-empty correlation ID", m.Name)
	case errors.Is(why, sequence.ErrNotStarted):
		return fault.Errorf(fault.InvalidArgument, "inference request for sequence %s to model '%s' must specify the START flag on the first request of the sequence", r.Sequence, m.Name)
	}
	return fault.Errorf(fault.Unavailable, "%s Server is stopping, scheduler for model has stopped accepting new inference requests", request.IDPrefix(r.ID))
}

// giveUp counts a request that was queued and not executed. It returns the error for the client.
func (m *Model) giveUp(j *job, why error) error {
	end := time.Now()
	elapsed := end.Sub(j.started)
	j.request.Trace.Queue(j.started)
	j.request.Trace.Finish(end)
	if errors.Is(why, scheduler.ErrExpired) {
		m.Stats.Failed(statistics.FailureRejected, elapsed)
		// without the id, since Triton has one text for all
		return fault.Errorf(fault.Unavailable, "Request timeout expired")
	}
	if errors.Is(why, sequence.ErrExpired) {
		m.Stats.Failed(statistics.FailureRejected, elapsed)
		return fault.Errorf(fault.Unavailable, "timeout of the corresponding sequence has been expired")
	}
	m.Stats.Failed(statistics.FailureCanceled, elapsed)
	return fault.Errorf(fault.Cancelled, "%s request was cancelled", request.IDPrefix(j.request.ID))
}

// Metadata describes the model for clients. versions are those to list.
func (m *Model) Metadata(versions []string) api.ModelMetadata {
	platform := m.Config.GetPlatform()
	if platform == "" {
		platform = m.Config.GetBackend()
	}
	meta := api.ModelMetadata{Name: m.Name, Versions: versions, Platform: platform, Inputs: []api.TensorMetadata{}, Outputs: []api.TensorMetadata{}}
	batched := m.Signature.MaxBatch > 0
	for _, in := range m.Config.GetInput() {
		meta.Inputs = append(meta.Inputs, api.TensorMetadata{Name: in.GetName(), Datatype: request.WireName(in.GetDataType()), Shape: request.FullShape(in.GetDims(), batched)})
	}
	for _, out := range m.Config.GetOutput() {
		meta.Outputs = append(meta.Outputs, api.TensorMetadata{Name: out.GetName(), Datatype: request.WireName(out.GetDataType()), Shape: request.FullShape(out.GetDims(), batched)})
	}
	return meta
}
