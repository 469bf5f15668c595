package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"tuner/engine/batching"
	"tuner/engine/fault"
	"tuner/engine/ratelimit"
	"tuner/engine/request"
	"tuner/engine/scheduler"
	"tuner/engine/sequence"
	"tuner/engine/state"
	"tuner/model/modelconfig"
)

// errRows refuses a request of several rows, since a sequence has one row.
var errRows = errors.New("a request of a sequence has one row")

// maxSlots bounds the sequences that all instances of a model serve at the same time.
const maxSlots = 1 << 20

// newAdded prepares what the server adds to the requests of a model. nil: its requests form no
// sequences.
func (s *Server) newAdded(src *source, c *modelconfig.Config) (*state.Spec, error) {
	if c.GetSequenceBatching() == nil {
		return nil, nil
	}
	slots := modelconfig.SequenceSlots(c) * max(1, len(s.instances(c)))
	if slots > maxSlots {
		return nil, fault.Errorf(fault.InvalidArgument, "model '%s' has %d slots for sequences in all instances; this engine has %d at most", src.Name, slots, maxSlots)
	}
	added, err := state.New(c, slots, func(name string, limit int64) ([]byte, error) {
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("initial state '%s' leaves the model's folder initial_state", name)
		}
		return src.ReadFile(filepath.Join(src.Dir, "initial_state", name), limit)
	})
	if err != nil {
		return nil, invalid(err)
	}
	return added, nil
}

// newSequencePool makes the pool of a model whose requests form sequences.
func (s *Server) newSequencePool(m *model, instances []instance) *pool {
	q := m.config.GetSequenceBatching()
	set := sequence.Settings{
		Slots: modelconfig.SequenceSlots(m.config), MaxBatch: max(1, int(m.config.GetMaxBatchSize())),
		Idle: request.Microseconds(q.GetMaxSequenceIdleMicroseconds()), Hold: s.options.Hold, HoldBacklog: s.options.HoldBacklog, Timer: s.options.Timer,
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
		e := &sequenceExecutor{executor: executor{session: in.session, slots: m.added.NewSlots(set.Slots)}, claim: in.claim}
		e.apart.session, _ = in.session.(ApartSession)
		if in.policy.IsAny() {
			executors = append(executors, e)
		} else {
			executors = append(executors, &boundSequences{e, boundExecutor{policy: in.policy}})
		}
	}
	return &pool{sequences: sequence.New(set, executors), instances: instances}
}

// pending returns the number of requests that wait for an instance. Those of an ensemble wait in the
// pools of its models.
func (p *pool) pending() int {
	switch {
	case p.sequences != nil:
		return p.sequences.Pending()
	case p.runner != nil:
		return 0
	}
	return p.scheduler.Pending()
}

// reconfigure changes the batching. That of sequences never changes in a pool.
func (p *pool) reconfigure(c *modelconfig.Config) {
	if p.scheduler != nil {
		p.scheduler.Reconfigure(batching.Settings(c))
	}
}

// checkSequence refuses an identity that the model cannot be told.
func (m *model) checkSequence(r *Request) error {
	if err := m.added.CheckID(m.name, r.Sequence); err != nil {
		return fault.Errorf(fault.InvalidArgument, "%s %v", request.IDPrefix(r.ID), err)
	}
	return nil
}

// enqueueInSequence queues a request of a sequence.
func (m *model) enqueueInSequence(j *job) (waiter, error) {
	if j.prepared.Rows > 1 {
		return nil, errRows
	}
	r := j.request
	t, err := m.pool.sequences.Enqueue(sequence.Item[*job]{
		Value: j, ID: r.Sequence, Start: r.Start, End: r.End, Shape: j.prepared.Shape, Timeout: r.Timeout,
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
		e.batch.Inputs = append(e.batch.Inputs, BatchInput(in))
	}
	for _, name := range e.slots.Outputs() {
		if !slices.Contains(e.batch.Outputs, name) {
			e.batch.Outputs = append(e.batch.Outputs, name)
		}
	}
}

// keepStates stores the states among the outputs in the slots of their rows.
func (e *executor) keepStates(m *model, outputs []Tensor) error {
	for k, name := range e.slots.Outputs() {
		out := &outputs[slices.Index(e.batch.Outputs, name)]
		cut, err := request.NewSlicer(out, len(e.rows), m.signature.MaxBatch > 0)
		if err != nil {
			return err
		}
		shape := out.Shape
		if m.signature.MaxBatch > 0 {
			shape = shape[1:]
		}
		for i := range e.rows {
			data, err := cut.Next(1)
			if err == nil {
				err = e.slots.Update(e.rows[i], k, shape, data)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
