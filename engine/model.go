package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"tuner/engine/api"
	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/scheduler"
	"tuner/engine/statistics"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// model is one version of a model that is, or was, ready to serve. It is immutable, except for its
// counters.
type model struct {
	name         string
	version      int64
	config       *modelconfig.Config
	signature    *request.Signature
	stats        *statistics.Statistics
	pool         *pool
	answers      *answers // nil: none are cached
	loadDuration time.Duration
}

// pool has the instances of a model and their scheduler. Models that differ only in the batching of
// requests share one.
type pool struct {
	scheduler *scheduler.Scheduler[*job]
	instances []instance // at least one
	files     *shared    // the temporary folder of the model's files, if there is one
	// requests between Start and Wait; none is added after the pool has been retired
	users sync.WaitGroup
}

func newPool(instances []instance, set scheduler.Settings, timer func(call func()) scheduler.Timer) *pool {
	var executors []scheduler.Executor[*job]
	for _, in := range instances {
		var e scheduler.Executor[*job] = &executor{session: in.session}
		if apart, ok := in.session.(ApartSession); ok {
			e = &apartExecutor{session: apart}
		}
		if !in.policy.IsAny() {
			e = &boundExecutor{e, in.policy}
		}
		executors = append(executors, e)
	}
	return &pool{scheduler: scheduler.New(set, executors, timer), instances: instances}
}

// retire waits for the last request and frees the sessions.
func (p *pool) retire() error {
	p.users.Wait()
	p.scheduler.Close()
	if p.files != nil {
		defer p.files.release()
	}
	return closeSessions(p.instances)
}

func closeSessions(instances []instance) error {
	var errs []error
	for _, in := range instances {
		errs = append(errs, in.session.Close())
	}
	return errors.Join(errs...)
}

// job is a request on its way through the scheduler.
type job struct {
	model    *model
	request  *Request
	prepared request.Prepared
	started  time.Time

	response *Response
	err      error
}

// Pending is a request that has been accepted. The caller must call Wait once.
type Pending struct {
	job     job
	ticket  *scheduler.Ticket[*job]
	charged int     // charged to the request's account for its strings
	lookUp  *lookUp // nil: the model has no cache
}

// start checks and queues a request. The caller must have entered the pool (see Server.acquire).
// Wait leaves it, or start on error.
func (m *model) start(r *Request) (*Pending, error) {
	p := &Pending{job: job{model: m, request: r, started: time.Now()}}
	j := &p.job
	var err error
	if j.prepared, err = m.signature.Prepare(r); err != nil {
		m.pool.users.Done()
		return nil, err
	}
	if m.answers != nil && p.find() {
		return p, nil
	}
	if p.charged = stringBytes(j.prepared.Inputs); !r.Memory.Take(p.charged) {
		m.pool.users.Done()
		return nil, fault.Full(r.Memory)
	}
	p.ticket, err = m.pool.scheduler.Enqueue(scheduler.Item[*job]{
		Value: j, Rows: j.prepared.Rows, Shape: j.prepared.Shape, Priority: r.Priority, Timeout: r.Timeout,
	})
	if err != nil {
		m.pool.users.Done()
		r.Memory.Give(p.charged)
		return nil, refusal(r, err)
	}
	return p, nil
}

// stringBytes returns the memory that backends take for string inputs: a C++ object for each, and
// the characters. For other types they copy less than the input itself, into memory that they keep.
func stringBytes(inputs []Tensor) int {
	const object = 32
	n := 0
	for i := range inputs {
		if in := &inputs[i]; in.DataType == configpb.DataType_TYPE_STRING {
			count, _ := request.Product(in.Shape) // checked against the data before
			n += object*int(count) + len(in.Data)
		}
	}
	return n
}

// Wait blocks until the request is answered. If ctx ends while the request is queued, it leaves the
// queue. If it is being executed, Wait waits for it. The caller releases the Response.
func (p *Pending) Wait(ctx context.Context) (*Response, error) {
	defer p.job.model.pool.users.Done()
	defer p.job.request.Memory.Give(p.charged)
	if p.ticket == nil { // a cached answer
		return p.job.response, p.job.err
	}
	if err := p.ticket.Wait(ctx); err != nil {
		return nil, p.job.model.giveUp(&p.job, err)
	}
	if p.lookUp != nil && p.job.err == nil {
		p.keep()
	}
	return p.job.response, p.job.err
}

// refusal returns the error for a request that the scheduler did not accept. As in Triton
// (InferenceRequest::Run) no statistics count it.
func refusal(r *Request, why error) error {
	if errors.Is(why, scheduler.ErrQueueFull) {
		return fault.Errorf(fault.Unavailable, "%s Exceeds maximum queue size", request.IDPrefix(r.ID))
	}
	return fault.Errorf(fault.Unavailable, "%s Server is stopping, scheduler for model has stopped accepting new inference requests", request.IDPrefix(r.ID))
}

// giveUp counts a request that was queued and not executed. It returns the error for the client.
func (m *model) giveUp(j *job, why error) error {
	elapsed := time.Since(j.started)
	if errors.Is(why, scheduler.ErrExpired) {
		m.stats.Failed(statistics.FailureRejected, elapsed)
		// without the id, since Triton has one text for all
		return fault.Errorf(fault.Unavailable, "Request timeout expired")
	}
	m.stats.Failed(statistics.FailureCanceled, elapsed)
	return fault.Errorf(fault.Cancelled, "%s request was cancelled", request.IDPrefix(j.request.ID))
}

// metadata describes the model for clients. versions are those to list.
func (m *model) metadata(versions []string) api.ModelMetadata {
	platform := m.config.GetPlatform()
	if platform == "" {
		platform = m.config.GetBackend()
	}
	meta := api.ModelMetadata{Name: m.name, Versions: versions, Platform: platform, Inputs: []api.TensorMetadata{}, Outputs: []api.TensorMetadata{}}
	batched := m.signature.MaxBatch > 0
	for _, in := range m.config.GetInput() {
		meta.Inputs = append(meta.Inputs, api.TensorMetadata{Name: in.GetName(), Datatype: request.WireName(in.GetDataType()), Shape: fullShape(in.GetDims(), batched)})
	}
	for _, out := range m.config.GetOutput() {
		meta.Outputs = append(meta.Outputs, api.TensorMetadata{Name: out.GetName(), Datatype: request.WireName(out.GetDataType()), Shape: fullShape(out.GetDims(), batched)})
	}
	return meta
}

// fullShape returns dims, with the batch dimension in front if the model batches.
func fullShape(dims []int64, batched bool) []int64 {
	shape := make([]int64, 0, len(dims)+1)
	if batched {
		shape = append(shape, -1)
	}
	return append(shape, dims...)
}
