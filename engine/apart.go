package engine

import (
	"errors"
	"time"

	"tuner/engine/fault"
	"tuner/engine/scheduler"
	"tuner/engine/statistics"
)

// apartExecutor runs batches on a session that takes each request by itself.
type apartExecutor struct {
	session  ApartSession
	requests []Apart
}

// Execute runs the batch and stores the response or error in each job. As in Triton's identity
// backend, the batch of a model that does not batch counts no rows.
func (e *apartExecutor) Execute(items []scheduler.Item[*job]) {
	begin := time.Now()
	rows := 0
	for _, it := range items {
		p := &it.Value.prepared
		sig := it.Value.model.signature
		if sig.maxBatch > 0 {
			rows += p.rows
		}
		var names []string
		for i := range sig.outputs {
			if p.outputs == nil || p.outputs[i] {
				names = append(names, sig.outputs[i].name)
			}
		}
		e.requests = append(e.requests, Apart{Inputs: p.inputs, Names: names})
	}
	result := e.session.ExecuteApart(e.requests)
	end := time.Now()
	d := statistics.Span{Input: result.Gathered.Sub(begin), Infer: result.Computed.Sub(result.Gathered), Output: end.Sub(result.Computed)}
	items[0].Value.model.stats.Executed(rows, d)
	for i, it := range items {
		j := it.Value
		e.settle(j, &e.requests[i])
		if j.err != nil {
			j.model.stats.Failed(statistics.FailureOther, end.Sub(j.started))
			continue
		}
		j.model.stats.Succeeded(j.prepared.rows, end.Sub(j.started), begin.Sub(it.Enqueued), d, end)
	}
	clear(e.requests)
	e.requests = e.requests[:0]
}

// settle stores the response or error of one request.
func (e *apartExecutor) settle(j *job, a *Apart) {
	var known *fault.Error
	switch {
	case errors.As(a.Err, &known):
		j.err = known
		return
	case a.Err != nil:
		j.err = fault.Errorf(fault.Internal, "%v", a.Err)
		return
	}
	sig := j.model.signature
	for i := range a.Outputs {
		t := &a.Outputs[i]
		for k := range sig.outputs {
			if spec := &sig.outputs[k]; spec.name == t.Name && spec.reshaped {
				t.Shape = spec.requestShape(t.Shape, sig.maxBatch > 0)
			}
		}
	}
	memory := &shared{}
	memory.users.Store(1)
	response := &Response{Model: j.model.name, Version: j.model.version, ID: j.request.ID, memory: memory, account: j.request.Memory, Outputs: a.Outputs}
	if !response.account.Take(outputBytes(response.Outputs)) {
		j.err = fault.Full(response.account)
		return
	}
	j.response = response
}
