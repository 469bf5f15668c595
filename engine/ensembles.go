package engine

import (
	"context"
	"fmt"
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
	server *Server
	graph  *ensemble.Graph
	whole  *ensemble.Need // of requests for all outputs
	order  []string       // names of the outputs, as in answers
	runner *ensemble.Runner
}

// newEnsemble makes a version of an ensemble, whose models have been checked.
func (s *Server) newEnsemble(src *source, number int64, old *model) (*model, error) {
	graph, err := ensemble.New(src.Config)
	if err == nil {
		err = src.CheckLabels(src.Config)
	}
	if err != nil {
		return nil, invalid(err)
	}
	m := &model{name: src.Name, version: number, config: src.Config, signature: request.NewSignature(src.Config)}
	s.count(m, old, false) // as in Triton, its counters begin again when a model of it is loaded again
	runner := ensemble.NewRunner()
	m.composed = &composed{server: s, graph: graph, whole: graph.Need(nil), runner: runner}
	for _, out := range slices.Backward(src.Config.GetOutput()) { // Triton's small hash table has this order
		m.composed.order = append(m.composed.order, out.GetName())
	}
	m.pool = &pool{runner: runner}
	if src.temp != nil {
		src.temp.users.Add(1)
		m.pool.files = src.temp
	}
	return m, nil
}

// checkSteps checks that an ensemble's models are ready, and that they fit together. Texts are
// Triton's. It returns nil for any other model. The caller holds Server.mu.
func (s *Server) checkSteps(src *source) error {
	steps := src.Config.GetEnsembleScheduling().GetStep()
	if len(steps) > 0 && s.options.Namespacing {
		return fmt.Errorf("ensemble '%s' is not served with --model-namespacing: leave the option out", src.Name)
	}
	models := map[string]*modelconfig.Config{}
	for _, step := range steps {
		name := step.GetModelName()
		m, err := s.find(name, 0)
		if err != nil {
			return fmt.Errorf("ensemble '%s' depends on '%s' which has no loaded version.", src.Name, name) //lint:ignore ST1005 Triton's wording
		}
		if m.pool.sequences != nil {
			return fmt.Errorf("ensemble '%s' contains '%s', whose requests form sequences: this engine does not run it in ensembles", src.Name, name)
		}
		models[name] = m.config
		if v := step.GetModelVersion(); v != -1 {
			if found := s.entries[name].versions[v]; found == nil || found.model == nil {
				//lint:ignore ST1005 Triton's wording
				return fmt.Errorf("ensemble '%s' depends on '%s' whose required version %d is not loaded.", src.Name, name, v)
			}
		}
	}
	if len(steps) == 0 {
		return nil
	}
	return ensemble.Check(src.Config, models)
}

// begin starts a request to an ensemble. The outcome comes with Wait, also if it fails at once.
func (c *composed) begin(p *Pending, n scheduler.Notifier) {
	j := &p.job
	need := c.whole
	if j.prepared.Outputs != nil {
		need = c.graph.Need(j.prepared.Outputs)
	}
	p.done = make(chan struct{}, 1)
	models, err := c.server.enterSteps(c.graph, need, j.request)
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
	p.flow = &ensemble.Flow{Need: need, Models: models, Batched: j.model.signature.MaxBatch > 0, Runner: c.runner, Finished: finished}
	p.flow.Begin(j.prepared.Inputs)
}

// enterSteps finds the models of the steps that a request needs, and enters their pools.
func (s *Server) enterSteps(g *ensemble.Graph, need *ensemble.Need, r *Request) ([]ensemble.Model, error) {
	models := make([]ensemble.Model, len(g.Steps))
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range g.Steps {
		if !need.Steps[i] {
			continue
		}
		m, err := s.find(g.Steps[i].Model, max(0, g.Steps[i].Version))
		if err != nil {
			for _, entered := range models[:i] {
				if entered != nil {
					entered.Leave()
				}
			}
			return nil, err
		}
		m.pool.users.Add(1)
		models[i] = stepModel{m, r}
	}
	return models, nil
}

// finish sets the outcome of an ensemble's request, and counts it as Triton does: the steps'
// durations of this request, and one execution.
func (c *composed) finish(j *job, a ensemble.Answers, err error, begin time.Time) {
	m := j.model
	end := time.Now()
	if err != nil {
		j.err = fault.Errorf(fault.CodeOf(err), "in ensemble '%s', %s", m.name, err.Error())
		m.stats.Failed(statistics.FailureOther, end.Sub(j.started))
		return
	}
	batched := m.signature.MaxBatch > 0
	memory := &shared{free: a.Release}
	memory.users.Store(1)
	r := &Response{Model: m.name, Version: m.version, ID: j.request.ID, IsComposed: true, memory: memory}
	for _, name := range c.order {
		k := slices.IndexFunc(m.signature.Outputs, func(spec request.Spec) bool { return spec.Name == name })
		at := c.graph.Outputs[k]
		t, spec := a.Tensors[at], &m.signature.Outputs[k]
		if t == nil {
			continue
		}
		want := spec.Dims
		if spec.Reshaped {
			want = spec.Reshape
		}
		out := Tensor{Name: spec.Name, DataType: t.DataType, Shape: ensemble.Reshape(want, batched, t.Shape, a.Batched[at]), Data: t.Data}
		if spec.Reshaped && (!batched || len(out.Shape) > 0) {
			out.Shape = spec.RequestShape(out.Shape, batched)
		}
		r.Outputs = append(r.Outputs, out)
	}
	j.response, j.span = r, a.Span
	m.stats.Executed(j.prepared.Rows, a.Span)
	m.stats.Succeeded(j.prepared.Rows, end.Sub(j.started), begin.Sub(j.started), a.Span, end)
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

// stepModel is a model of a step, for one request to an ensemble.
type stepModel struct {
	*model
	outer *Request
}

// Batches implements ensemble.Model.
func (m stepModel) Batches() bool { return m.signature.MaxBatch > 0 }

// Dims implements ensemble.Model.
func (m stepModel) Dims(input string) []int64 {
	i := slices.IndexFunc(m.signature.Inputs, func(spec request.Spec) bool { return spec.Name == input })
	if i < 0 {
		return nil // the request will be refused
	}
	return m.signature.Inputs[i].Dims
}

// Leave implements ensemble.Model.
func (m stepModel) Leave() { m.pool.users.Done() }

// Start implements ensemble.Model. As in Triton, a step has the id, priority and timeout of the
// ensemble's request.
func (m stepModel) Start(inputs []Tensor, outputs []string, n ensemble.Notifier) (ensemble.Call, error) {
	if m.pool.sequences != nil { // it was loaded again a moment ago, and the ensemble is about to leave
		m.Leave()
		return nil, fault.Errorf(fault.Unavailable, "the requests of model '%s' form sequences now", m.name)
	}
	r := &Request{
		Model: m.name, Version: m.version, ID: m.outer.ID, Priority: m.outer.Priority, Timeout: m.outer.Timeout,
		Inputs: inputs, Outputs: outputs, Memory: m.outer.Memory,
	}
	p, err := m.start(r, n)
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
		p.ticket.(*scheduler.Ticket[*job]).Cancel(cause) // no step has sequences
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
