package served

import (
	"errors"
	"slices"

	"tuner/engine/fault"
	"tuner/engine/ratelimit"
	"tuner/engine/request"
	"tuner/engine/scheduler"
	"tuner/engine/sequence"
	"tuner/engine/session"
	"tuner/engine/state"
	"tuner/model/modelconfig"
)

// errRows refuses a request of several rows, since a sequence has one row.
var errRows = errors.New("a request of a sequence has one row")

// newSequences makes the scheduler of a model whose requests form sequences.
func newSequences(c *modelconfig.Config, added *state.Spec, instances []Instance, w Waiting) *sequence.Scheduler[*job] {
	q := c.GetSequenceBatching()
	set := sequence.Settings{
		Slots: modelconfig.SequenceSlots(c), MaxBatch: max(1, int(c.GetMaxBatchSize())),
		Idle: request.Microseconds(q.GetMaxSequenceIdleMicroseconds()), Hold: w.Hold, HoldBacklog: w.HoldBacklog, Timer: w.Timer,
		Iterative: q.GetIterativeSequence(),
	}
	if oldest := q.GetOldest(); oldest != nil {
		set.Oldest, set.Delay, set.PreserveOrdering = true, request.Microseconds(oldest.GetMaxQueueDelayMicroseconds()), oldest.GetPreserveOrdering()
		for _, n := range oldest.GetPreferredBatchSize() {
			set.Preferred = append(set.Preferred, int(n))
		}
	} else {
		set.Delay, set.Utilization = request.Microseconds(q.GetDirect().GetMaxQueueDelayMicroseconds()), float64(q.GetDirect().GetMinimumSlotUtilization())
	}
	var executors []sequence.Executor[*job]
	for _, in := range instances {
		e := &sequenceExecutor{executor: executor{session: in.Session, slots: added.NewSlots(set.Slots)}, claim: in.Claim}
		e.apart.session, _ = in.Session.(session.ApartSession)
		if in.Policy.IsAny() {
			executors = append(executors, e)
		} else {
			executors = append(executors, &boundSequences{e, boundExecutor{policy: in.Policy}})
		}
	}
	return sequence.New(set, executors)
}

// checkSequence refuses an identity that the model cannot be told.
func (m *Model) checkSequence(r *request.Request) error {
	if err := m.Added.CheckID(m.Name, r.Sequence); err != nil {
		return fault.Errorf(fault.InvalidArgument, "%s %v", request.IDPrefix(r.ID), err)
	}
	return nil
}

// enqueueInSequence queues a request of a sequence. n hears of its outcome; nil: nobody.
func (m *Model) enqueueInSequence(j *job, n scheduler.Notifier) (waiter, error) {
	if j.prepared.Rows > 1 {
		return nil, errRows
	}
	r := j.request
	t, err := m.Pool.sequences.Enqueue(sequence.Item[*job]{
		Value: j, ID: r.Sequence, Start: r.Start, End: r.End, Shape: j.prepared.Shape, Timeout: r.Timeout, Notifier: n,
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// sequenceExecutor runs batches of requests of sequences on one session.
type sequenceExecutor struct {
	executor
	apart apartExecutor // its session is nil, unless the session runs each request by itself
	items []scheduler.Item[*job]
	claim *ratelimit.Claim // what the instance shares with other models; nil: nothing
}

// boundSequences is an executor whose thread is bound by a host policy.
type boundSequences struct {
	*sequenceExecutor
	boundExecutor
}

// Execute implements sequence.Executor.
func (b *boundSequences) Execute(rows []sequence.Row[*job]) { b.sequenceExecutor.Execute(rows) }

// Execute runs the batch and stores the response or error in the job of each row that is not vacant.
func (e *sequenceExecutor) Execute(rows []sequence.Row[*job]) {
	e.claim.Acquire()
	defer e.claim.Release()
	e.apart.vacant = 0
	for _, r := range rows {
		if r.Vacant && e.apart.session != nil {
			e.apart.vacant++
			continue
		}
		e.items = append(e.items, scheduler.Item[*job]{Value: r.Value, Enqueued: r.Enqueued})
		e.rows = append(e.rows, state.Row{Slot: r.Slot, ID: r.ID, Start: r.Start, End: r.End, Vacant: r.Vacant})
	}
	if e.apart.session != nil {
		e.apart.Execute(e.items)
	} else {
		e.executor.Execute(e.items)
	}
	clear(e.items)
	clear(e.rows)
	e.items, e.rows = e.items[:0], e.rows[:0]
}

// addInputs adds controls and states to the gathered batch, and asks for the states.
func (e *executor) addInputs() {
	for _, in := range e.slots.Inputs(e.rows) {
		e.batch.Inputs = append(e.batch.Inputs, session.BatchInput(in))
	}
	for _, name := range e.slots.Outputs() {
		if !slices.Contains(e.batch.Outputs, name) {
			e.batch.Outputs = append(e.batch.Outputs, name)
		}
	}
}

// keepStates stores the states among the outputs in the slots of their rows. The sequence of a request that
// is refused stays where it was: the client may send the request again.
func (e *executor) keepStates(items []scheduler.Item[*job], outputs []request.Tensor) error {
	batched := items[0].Value.model.Signature.MaxBatch > 0
	e.stateCuts, e.states = e.stateCuts[:0], e.states[:0]
	for _, name := range e.slots.Outputs() {
		out := &outputs[slices.Index(e.batch.Outputs, name)]
		cut, err := request.NewSlicer(out, len(e.rows), batched)
		if err != nil {
			return err
		}
		row := request.Tensor{Shape: out.Shape}
		if batched {
			row.Shape = row.Shape[1:]
		}
		e.stateCuts, e.states = append(e.stateCuts, cut), append(e.states, row)
	}
	for i := range e.rows {
		var err error
		for k := range e.states {
			if e.states[k].Data, err = e.stateCuts[k].Next(1); err != nil {
				return err
			}
		}
		j := items[i].Value
		if e.rows[i].Vacant || j.err != nil {
			continue
		}
		if err := e.slots.Update(e.rows[i], e.states); err != nil {
			j.withdraw(err)
		}
	}
	return nil
}
