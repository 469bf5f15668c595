package served

import (
	"context"
	"slices"
	"time"

	"tuner/engine/ensemble"
	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/scheduler"
	"tuner/engine/statistics"
	"tuner/model/modelconfig"
)

// composed is the part of a model that consists of other models.
type composed struct {
	enter  EnterSteps
	graph  *ensemble.Graph
	whole  *ensemble.Need // of requests for all outputs
	order  []string       // names of the outputs, as in answers
	limits ensemble.Limits
	runner *ensemble.Runner
	// requests that a request makes in all, itself included
	requests int
}

// StepBytes is charged to a request to an ensemble for each step, until it has its outcome: the requests to
// its models, without their tensors.
const StepBytes = 2 << 10

// EnterSteps finds the models of the steps that a request needs, and enters their pools.
type EnterSteps func(need *ensemble.Need, r *request.Request) ([]ensemble.Model, error)

// NewEnsemble makes a model that consists of other models, without counters.
func NewEnsemble(name string, version int64, c *modelconfig.Config, g *ensemble.Graph, enter EnterSteps) *Model {
	m := &Model{Name: name, Version: version, Config: c, Signature: request.NewSignature(c)}
	m.composed = &composed{enter: enter, graph: g, whole: g.Need(nil), runner: ensemble.NewRunner()}
	m.composed.limits = ensemble.NewLimits(len(g.Steps), int(c.GetEnsembleScheduling().GetMaxInflightRequests()))
	for _, out := range slices.Backward(c.GetOutput()) { // Triton's small hash table has this order
		m.composed.order = append(m.composed.order, out.GetName())
	}
	m.Pool = &Pool{runner: m.composed.runner}
	return m
}

// SetSteps tells an ensemble which models its steps are, before it serves.
func (m *Model) SetSteps(models []*Model) {
	m.composed.requests = 1
	for _, step := range models {
		m.composed.requests += step.Requests()
	}
}

// Requests returns how many requests a request to the model makes in all, itself included.
func (m *Model) Requests() int {
	if m.composed == nil {
		return 1
	}
	return m.composed.requests
}

// needs returns the bytes that a request needs besides its tensors.
func (m *Model) needs(j *job) int {
	if m.composed != nil {
		return StepBytes * len(m.composed.graph.Steps)
	}
	n := request.StringBytes(j.prepared.Inputs)
	if m.Ragged != nil {
		n += m.Ragged.Bytes(1, func(_ int, input string) []int64 { return shapeOf(&j.prepared, input) })
	}
	return n
}

// IsEnsemble reports whether the model consists of other models.
func (m *Model) IsEnsemble() bool { return m.composed != nil }

// begin starts a request to an ensemble. The outcome comes with Wait, also if it fails at once.
func (c *composed) begin(p *Pending, n scheduler.Notifier) {
	j := &p.job
	need := c.whole
	if j.prepared.Outputs != nil {
		need = c.graph.Need(j.prepared.Outputs)
	}
	p.done = make(chan struct{}, 1)
	models, err := c.enter(need, j.request)
	begin := time.Now()
	finished := func(a ensemble.Answers, err error) {
		c.finish(j, a, err, begin)
		p.done <- struct{}{}
		if n != nil {
			n.Notify()
		}
	}
	if err != nil {
		finished(ensemble.Answers{}, err)
		return
	}
	p.flow = &ensemble.Flow{
		Need: need, Models: models, Limits: c.limits, Batched: j.model.Signature.MaxBatch > 0, Runner: c.runner, Finished: finished,
	}
	p.flow.Begin(j.prepared.Inputs)
}

// finish sets the outcome of an ensemble's request, and counts it as Triton does: the steps'
// durations of this request, and one execution.
func (c *composed) finish(j *job, a ensemble.Answers, err error, begin time.Time) {
	m := j.model
	end := time.Now()
	j.request.Trace.Queue(begin)
	j.request.Trace.Finish(end)
	if err != nil {
		j.err = fault.Errorf(fault.CodeOf(err), "in ensemble '%s', %s", m.Name, err.Error())
		m.Stats.Failed(statistics.FailureOther, end.Sub(j.started))
		return
	}
	batched := m.Signature.MaxBatch > 0
	r := &Response{Model: m.Name, Version: m.Version, ID: j.request.ID, IsComposed: true, memory: NewShared(a.Release)}
	r.Sequence, r.Start, r.End = j.request.Sequence, j.request.Start, j.request.End
	for _, name := range c.order {
		k := slices.IndexFunc(m.Signature.Outputs, func(spec request.Spec) bool { return spec.Name == name })
		at := c.graph.Outputs[k]
		t, spec := a.Tensors[at], &m.Signature.Outputs[k]
		if t == nil {
			continue
		}
		want := spec.Dims
		if spec.Reshaped {
			want = spec.Reshape
		}
		out := request.Tensor{Name: spec.Name, DataType: t.DataType, Shape: ensemble.Reshape(want, batched, t.Shape, a.Batched[at]), Data: t.Data}
		if spec.Reshaped && (!batched || len(out.Shape) > 0) {
			out.Shape = spec.RequestShape(out.Shape, batched)
		}
		r.Outputs = append(r.Outputs, out)
	}
	j.response, j.span = r, a.Span
	m.Stats.Executed(j.prepared.Rows, a.Span)
	m.Stats.Succeeded(j.prepared.Rows, end.Sub(j.started), begin.Sub(j.started), a.Span, end)
}

// await waits for an ensemble's request. If ctx ends, it ends the steps that are queued.
func (p *Pending) await(ctx context.Context) {
	select {
	case <-p.done:
	case <-ctx.Done():
		if p.flow != nil {
			p.flow.Cancel(fault.Errorf(fault.Cancelled, "%s request was cancelled", request.IDPrefix(p.job.request.ID)))
		}
		<-p.done
	}
}

// Step returns the model as a step of a request to an ensemble. The caller has entered its pool.
func (m *Model) Step(outer *request.Request) ensemble.Model { return stepModel{m, outer} }

// stepModel is a model of a step, for one request to an ensemble.
type stepModel struct {
	*Model
	outer *request.Request
}

// Batches implements ensemble.Model.
func (m stepModel) Batches() bool { return m.Signature.MaxBatch > 0 }

// Dims implements ensemble.Model.
func (m stepModel) Dims(input string) []int64 {
	i := slices.IndexFunc(m.Signature.Inputs, func(spec request.Spec) bool { return spec.Name == input })
	if i < 0 {
		return nil // the request will be refused
	}
	return m.Signature.Inputs[i].Dims
}

// Leave implements ensemble.Model.
func (m stepModel) Leave() { m.Pool.users.Done() }

// Start implements ensemble.Model. As in Triton, a step has the id, priority, timeout and place in a
// sequence of the ensemble's request.
func (m stepModel) Start(inputs []request.Tensor, outputs []string, n ensemble.Notifier) (ensemble.Call, error) {
	r := &request.Request{
		Model: m.Name, Version: m.Version, ID: m.outer.ID, Priority: m.outer.Priority, Timeout: m.outer.Timeout,
		Sequence: m.outer.Sequence, Start: m.outer.Start, End: m.outer.End,
		Inputs: inputs, Outputs: outputs, Memory: m.outer.Memory, Trace: m.outer.Trace.Step(),
	}
	p, err := m.Model.Start(r, n)
	if err != nil {
		return nil, err
	}
	return stepCall{p}, nil
}

// stepCall is the inference of a step.
type stepCall struct{ pending *Pending }

// Cancel implements ensemble.Call.
func (c stepCall) Cancel(cause error) {
	switch p := c.pending; {
	case p.flow != nil:
		p.flow.Cancel(cause)
	case p.ticket != nil:
		p.ticket.Cancel(cause)
	}
}

// Wait implements ensemble.Call.
func (c stepCall) Wait() (ensemble.Answer, error) {
	response, err := c.pending.Wait(context.Background()) // it has its outcome
	if err != nil {
		return ensemble.Answer{}, err
	}
	return ensemble.Answer{Outputs: response.Outputs, Span: c.pending.job.span, Release: response.Release}, nil
}
