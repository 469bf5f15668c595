package served

import (
	"time"

	"tuner/engine/request"
	"tuner/engine/scheduler"
	"tuner/engine/session"
	"tuner/engine/trace"
)

// trace notes the times of a batch in the traces of its requests. A batch that failed may lack some
// times of r: the steps that it did not get to took no time.
func (e *executor) trace(items []scheduler.Item[*job], begin time.Time, r session.Result, end time.Time) {
	for k, it := range items {
		if !e.isVacant(k) {
			it.Value.trace(it.Enqueued, begin, r.Gathered, r.Computed, end)
		}
	}
}

// trace notes when a request was queued and executed, if it is traced.
func (j *job) trace(queued, begin, gathered, computed, end time.Time) {
	t := j.request.Trace
	if t == nil {
		return
	}
	if gathered.IsZero() {
		gathered = begin
	}
	if computed.IsZero() {
		computed = end
	}
	t.Queue(queued)
	t.Compute(begin, gathered, computed, end)
	t.Finish(end)
}

// traceInputs puts the inputs of a request into its trace, if that has tensors.
func traceInputs(r *request.Request) {
	if r.Trace.Tensors() {
		for i := range r.Inputs {
			r.Trace.Input(traced(&r.Inputs[i]))
		}
	}
}

// traceAnswer notes that a request has its answer. It puts the outputs into the trace, if that has
// tensors.
func (j *job) traceAnswer() {
	t := j.request.Trace
	if t == nil {
		return
	}
	if j.response != nil && t.Tensors() {
		for i := range j.response.Outputs {
			t.Output(traced(&j.response.Outputs[i]))
		}
	}
	t.Answer(time.Now())
}

func traced(t *request.Tensor) trace.Tensor {
	return trace.Tensor{Name: t.Name, Datatype: request.WireName(t.DataType), Shape: t.Shape, Data: t.Data}
}
