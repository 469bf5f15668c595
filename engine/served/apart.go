package served

import (
	"errors"
	"time"

	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/scheduler"
	"tuner/engine/session"
	"tuner/engine/statistics"
)

// apartExecutor runs batches on a session that takes each request by itself.
type apartExecutor struct {
	session  session.ApartSession
	requests []session.Apart
	vacant   int // rows of the batch without a request
}

// Execute runs the batch and stores the response or error in each job. As in Triton's identity
// backend, the batch of a model that does not batch counts no rows.
func (e *apartExecutor) Execute(items []scheduler.Item[*job]) {
	begin := time.Now()
	rows := e.vacant
	for _, it := range items {
		p := &it.Value.prepared
		sig := it.Value.model.Signature
		if sig.MaxBatch > 0 {
			rows += p.Rows
		}
		var names []string
		for i := range sig.Outputs {
			if p.Outputs == nil || p.Outputs[i] {
				names = append(names, sig.Outputs[i].Name)
			}
		}
		e.requests = append(e.requests, session.Apart{Inputs: p.Inputs, Names: names})
	}
	result := e.session.ExecuteApart(e.requests)
	end := time.Now()
	d := statistics.Span{Input: result.Gathered.Sub(begin), Infer: result.Computed.Sub(result.Gathered), Output: end.Sub(result.Computed)}
	items[0].Value.model.Stats.Executed(rows, d)
	for i, it := range items {
		j := it.Value
		e.settle(j, &e.requests[i])
		j.trace(it.Enqueued, begin, result.Gathered, result.Computed, end)
		j.request.Trace.Note(e.requests[i].Activities...)
		if j.err != nil {
			j.model.Stats.Failed(statistics.FailureOther, end.Sub(j.started))
			continue
		}
		j.span = d
		j.model.Stats.Succeeded(j.prepared.Rows, end.Sub(j.started), begin.Sub(it.Enqueued), d, end)
	}
	clear(e.requests)
	e.requests = e.requests[:0]
}

// settle stores the response or error of one request.
func (e *apartExecutor) settle(j *job, a *session.Apart) {
	var known *fault.Error
	switch {
	case errors.As(a.Err, &known):
		j.err = known
		return
	case a.Err != nil:
		j.err = fault.Errorf(fault.Internal, "%v", a.Err)
		return
	}
	sig := j.model.Signature
	for i := range a.Outputs {
		t := &a.Outputs[i]
		for k := range sig.Outputs {
			if spec := &sig.Outputs[k]; spec.Name == t.Name && spec.Reshaped {
				t.Shape = spec.RequestShape(t.Shape, sig.MaxBatch > 0)
			}
		}
	}
	response := &Response{Model: j.model.Name, Version: j.model.Version, ID: j.request.ID, account: j.request.Memory, Outputs: a.Outputs}
	if !response.account.Take(request.DataBytes(response.Outputs)) {
		j.err = j.full()
		return
	}
	j.response = response
}
