package served

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/scheduler"
	"tuner/engine/session"
	"tuner/engine/state"
	"tuner/engine/statistics"
)

// executor runs batches on one session. It reuses its lists, so that a steady load allocates
// little.
type executor struct {
	session session.Session
	batch   session.Batch
	cuts    []cut
	lends   atomic.Bool // outputs of a run are kept beyond their response
	// of a model whose requests form sequences: the slots of the instance, and the rows of the batch.
	// An item whose row is vacant is that of another row, and has no answer.
	slots *state.Slots
	rows  []state.Row
	// the states of a row, without the batch dimension, and what cuts them out of the batch's
	states    []request.Tensor
	stateCuts []request.Slicer
}

// isVacant reports whether item k of the batch stands in for a request that is not there.
func (e *executor) isVacant(k int) bool { return e.rows != nil && e.rows[k].Vacant }

// Execute runs the batch and stores the response or error in each job.
func (e *executor) Execute(items []scheduler.Item[*job]) {
	begin := time.Now()
	rows := e.gather(items)
	if e.slots != nil {
		e.addInputs()
	}
	if mixed := items[0].Value.model.Ragged; mixed != nil {
		mixed.Join(&e.batch, len(items), shapesOf(items))
	}
	result, err := e.session.Execute(&e.batch)
	defer e.forget()
	m := items[0].Value.model
	if err == nil {
		memory := NewShared(result.Free) // our reference, until all responses are made
		err = e.respond(items, result, rows, memory)
		if err == nil && e.slots != nil {
			err = e.keepStates(items, result.Outputs)
		}
		memory.Release()
	}
	end := time.Now()
	e.trace(items, begin, result, end)
	if err != nil {
		e.fail(items, err, end)
		return
	}
	d := statistics.Span{Input: result.Gathered.Sub(begin), Infer: result.Computed.Sub(result.Gathered), Output: end.Sub(result.Computed)}
	m.Stats.Executed(rows, d)
	for k, it := range items {
		if e.isVacant(k) {
			continue
		}
		j := it.Value
		if j.err != nil {
			j.model.Stats.Failed(failure(j.err), end.Sub(j.started))
			continue
		}
		j.span = d
		j.model.Stats.Succeeded(j.prepared.Rows, end.Sub(j.started), begin.Sub(it.Enqueued), d, end)
	}
}

// failure returns the class of the failure of a request that was executed. To Triton's backends an
// answer without a place is their own failure.
func failure(err error) statistics.Failure {
	if fault.CodeOf(err) == fault.Exhausted {
		return statistics.FailureOther
	}
	return statistics.FailureBackend
}

// gather lists the parts of each input and returns the rows of the batch.
func (e *executor) gather(items []scheduler.Item[*job]) int {
	sig := items[0].Value.model.Signature
	rows := 0
	for _, it := range items {
		rows += it.Value.prepared.Rows
	}
	for i, in := range items[0].Value.prepared.Inputs {
		if i == len(e.batch.Inputs) {
			e.batch.Inputs = slices.Grow(e.batch.Inputs, 1)[:len(e.batch.Inputs)+1] // with its lists from an earlier batch, if there was one
		}
		b := &e.batch.Inputs[i]
		b.Name, b.DataType = in.Name, in.DataType
		b.Shape = append(b.Shape[:0], in.Shape...)
		if sig.MaxBatch > 0 {
			b.Shape[0] = int64(rows)
		}
		b.Parts = b.Parts[:0]
		for _, it := range items {
			b.Parts = append(b.Parts, it.Value.prepared.Inputs[i].Data)
		}
	}
	e.batch.Inputs = e.batch.Inputs[:len(items[0].Value.prepared.Inputs)]
	e.batch.Outputs = e.batch.Outputs[:0]
	for _, out := range sig.Outputs {
		e.batch.Outputs = append(e.batch.Outputs, out.Name)
	}
	return rows
}

// forget drops the references to the requests' memory.
func (e *executor) forget() {
	for i := range e.batch.Inputs {
		clear(e.batch.Inputs[i].Parts)
	}
	clear(e.cuts)
	if e.slots != nil {
		clear(e.batch.Inputs) // the lists of added inputs are the slots'
		e.batch.Inputs = e.batch.Inputs[:0]
		clear(e.states)
		clear(e.stateCuts)
	}
}

func (e *executor) fail(items []scheduler.Item[*job], err error, end time.Time) {
	var known *fault.Error
	if !errors.As(err, &known) {
		known = fault.Errorf(fault.Internal, "%v", err)
	}
	for k, it := range items {
		if e.isVacant(k) {
			continue
		}
		it.Value.withdraw(known)
		it.Value.model.Stats.Failed(statistics.FailureBackend, end.Sub(it.Value.started))
	}
}

// respond slices the outputs of a batch into responses. All responses share three arrays, so that
// the allocations of a batch do not depend on the number of its requests.
func (e *executor) respond(items []scheduler.Item[*job], result session.Result, rows int, memory *Shared) error {
	sig := items[0].Value.model.Signature
	outputs := result.Outputs[:len(sig.Outputs)]
	e.cuts = e.cuts[:0]
	rank := 0 // sum over all outputs
	for i := range outputs {
		cut, err := newCut(&outputs[i], items, rows)
		if err != nil {
			return err
		}
		e.cuts = append(e.cuts, cut)
		rank += len(outputs[i].Shape)
	}
	responses := make([]Response, len(items))
	tensors := make([]request.Tensor, 0, len(items)*len(outputs))
	dims := make([]int64, 0, len(items)*rank)
	for k, it := range items {
		j := it.Value
		first := len(tensors)
		for i := range outputs {
			t, err := e.cuts[i].next(&outputs[i], k, j.prepared.Rows)
			if err != nil {
				return err
			}
			if j.prepared.Outputs != nil && !j.prepared.Outputs[i] || e.isVacant(k) {
				continue
			}
			if sig.MaxBatch > 0 && e.cuts[i].parts == nil {
				from := len(dims)
				dims = append(append(dims, int64(j.prepared.Rows)), t.Shape[1:]...)
				t.Shape = dims[from:len(dims):len(dims)]
			}
			switch spec := &sig.Outputs[i]; {
			case spec.Reshaped:
				t.Shape = spec.RequestShape(t.Shape, sig.MaxBatch > 0)
			case len(t.Shape) == 0: // as Triton's backend answers a scalar: its configuration has sizes of 1
				t.Shape = spec.Dims
			}
			tensors = append(tensors, t)
		}
		responses[k] = Response{Model: j.model.Name, Version: j.model.Version, ID: j.request.ID, memory: memory, account: j.request.Memory,
			Outputs: tensors[first:len(tensors):len(tensors)]}
		if len(items) == 1 && len(tensors) == len(result.Outputs) {
			responses[k].lends = &e.lends
		}
	}
	e.hand(items, responses, memory)
	return nil
}

// hand gives each job its response. It refuses jobs whose client has no place for the outputs, or holds
// too much already, since outputs may wait for a client that does not read.
func (e *executor) hand(items []scheduler.Item[*job], responses []Response, memory *Shared) {
	memory.users.Add(int32(len(items)))
	for k, it := range items {
		if e.isVacant(k) {
			memory.Release()
			continue
		}
		if err := it.Value.request.CheckRooms(responses[k].Outputs); err != nil {
			memory.Release()
			it.Value.err = err
			continue
		}
		if account := responses[k].account; !account.Take(request.DataBytes(responses[k].Outputs)) {
			memory.Release()
			it.Value.err = it.Value.full()
			continue
		}
		it.Value.response = &responses[k]
	}
}
