package ensemble

import (
	"errors"
	"slices"
	"sync"

	"tuner/engine/linked"
	"tuner/engine/request"
	"tuner/engine/statistics"
)

// Notifier hears that a call has its outcome. Notify must neither block nor call back.
type Notifier interface{ Notify() }

// Model is a model of a step. It has been entered, so that it stays until the call has its outcome,
// or until Leave.
type Model interface {
	Batches() bool
	Dims(input string) []int64 // of an input of that name, without the batch dimension
	// Start begins an inference. The tensors must stay until the call has its outcome. Also when it
	// fails, it leaves the model.
	Start(inputs []request.Tensor, outputs []string, n Notifier) (Call, error)
	Leave()
}

// Call is an inference of a step.
type Call interface {
	// Wait returns the outcome. It is called once, after the Notifier has heard of it.
	Wait() (Answer, error)
	// Cancel asks to end early. The Notifier hears of the outcome all the same.
	Cancel(cause error)
}

// Answer is the outcome of a step: the outputs, valid until Release.
type Answer struct {
	Outputs []request.Tensor
	Span    statistics.Span
	Release func()
}

// Flow is a request to an ensemble on its way.
type Flow struct {
	Need     *Need
	Models   []Model // by step; nil where the step does not run
	Limits   Limits
	Batched  bool // the request has a batch dimension
	Runner   *Runner
	Finished func(Answers, error) // called once, by the goroutine that finishes the request

	mu      sync.Mutex
	run     *Run
	tensors []held // by tensor
	steps   []call
	active  int // calls without an outcome, and those that wait for their limit
	span    statistics.Span
	err     error
	isDone  bool
}

// held is a tensor of the ensemble.
type held struct {
	request.Tensor
	batched bool // its first dimension is that of the batch
	there   bool // false also for an optional input that the request lacks
}

// call is a step that runs or has run.
type call struct {
	flow   *Flow
	number int
	inputs []request.Tensor
	waits  bool                // for its limit
	place  linked.Place[*call] // in the queue of its limit
	call   Call                // nil: not started, or it has its outcome
	answer Answer              // without one Release is nil
	next   *call               // in the Runner's queue
}

// Answers are the ensemble's outputs.
type Answers struct {
	// by tensor of the graph: nil where the request does not ask for it, or an optional input lacks
	Tensors []*request.Tensor
	Batched []bool // by tensor of the graph
	Span    statistics.Span
	Release func()
}

// Begin starts the steps that can run. inputs are tensors of the ensemble's inputs, by their names. A
// request that fails at once has its outcome when Begin returns.
func (f *Flow) Begin(inputs []request.Tensor) {
	g := f.Need.graph
	f.tensors, f.steps = make([]held, len(g.Tensors)), make([]call, len(g.Steps))
	for i := range f.steps {
		f.steps[i] = call{flow: f, number: i}
	}
	for _, t := range g.Inputs {
		for k := range inputs {
			if inputs[k].Name == g.Tensors[t] {
				f.tensors[t] = held{inputs[k], f.Batched, true}
			}
		}
	}
	f.mu.Lock()
	var ready []int
	f.run, ready = f.Need.Begin()
	f.launch(ready)
	f.unlock()
}

// Cancel ends the request, as soon as the steps that run have ended. It does nothing for a request
// that has its outcome.
func (f *Flow) Cancel(cause error) {
	f.mu.Lock()
	f.fail(cause)
	f.unlock()
}

// unlock finishes the request if nothing runs any more, and releases the lock.
func (f *Flow) unlock() {
	isLast := f.active == 0 && !f.isDone
	f.isDone = f.isDone || isLast
	f.mu.Unlock()
	if isLast {
		f.finish()
	}
}

// launch starts steps. The caller holds the lock.
func (f *Flow) launch(ready []int) {
	for _, i := range ready {
		if f.err != nil {
			return
		}
		if s := &f.steps[i]; f.Limits.of(i).enter(s) {
			f.start(s)
		}
		if s := &f.steps[i]; s.waits || s.call != nil {
			f.active++
		}
	}
}

// start starts a step that has its place. The caller holds the lock.
func (f *Flow) start(s *call) {
	m := f.Models[s.number]
	f.Models[s.number] = nil
	step := &f.Need.graph.Steps[s.number]
	for _, in := range step.Inputs {
		t := &f.tensors[in.Tensor]
		if !t.there {
			continue
		}
		s.inputs = append(s.inputs, request.Tensor{
			Name: in.Name, DataType: t.DataType, Shape: Reshape(m.Dims(in.Name), m.Batches(), t.Shape, t.batched), Data: t.Data,
		})
	}
	outputs := make([]string, len(step.Outputs))
	for k, out := range step.Outputs {
		outputs[k] = out.Name
		f.tensors[out.Tensor].batched = m.Batches()
	}
	started, err := m.Start(s.inputs, outputs, s)
	if err != nil {
		f.Limits.of(s.number).leave()
		f.fail(err)
		return
	}
	s.call = started
}

// fail sets the outcome, unless there is an error already, and ends the other steps. The caller
// holds the lock.
func (f *Flow) fail(err error) {
	if f.err != nil || f.isDone {
		return
	}
	f.err = err
	for i := range f.steps {
		s := &f.steps[i]
		if s.call != nil {
			s.call.Cancel(errEnded)
		}
		if s.waits && f.Limits.of(i).withdraw(s) {
			s.waits = false
			f.active--
		}
	}
}

// errEnded is the cause for steps of a request that has failed or was cancelled.
var errEnded = errors.New("the ensemble's request has ended")

// Notify implements Notifier.
func (c *call) Notify() { c.flow.Runner.push(c) }

// admit starts a step that has got a place, unless the request has ended meanwhile. The caller holds the
// lock.
func (c *call) admit() {
	f := c.flow
	c.waits = false
	if f.err == nil {
		f.start(c)
	} else {
		f.Limits.of(c.number).leave()
	}
	if c.call == nil {
		f.active--
	}
}

// settle takes the outcome of a step, and starts those that can run now. If the step has waited for its
// limit, settle starts it.
func (c *call) settle() {
	f := c.flow
	f.mu.Lock()
	if c.waits {
		c.admit()
		f.unlock()
		return
	}
	answer, err := c.call.Wait()
	c.call = nil
	f.active--
	f.Limits.of(c.number).leave()
	switch {
	case err != nil:
		f.fail(err)
	case f.err != nil:
		answer.Release()
	default:
		c.answer = answer
		f.span.Input += answer.Span.Input
		f.span.Infer += answer.Span.Infer
		f.span.Output += answer.Span.Output
		for _, out := range f.Need.graph.Steps[c.number].Outputs {
			t := &f.tensors[out.Tensor]
			k := slices.IndexFunc(answer.Outputs, func(o request.Tensor) bool { return o.Name == out.Name })
			if t.there = k >= 0; t.there { // not a composed model's output that an optional input would give
				t.Tensor = answer.Outputs[k]
			}
		}
		ready, free := f.run.Done(c.number)
		for _, i := range free {
			f.steps[i].release()
		}
		f.launch(ready)
	}
	f.unlock()
}

// release frees the outputs of a step. It may be called again.
func (c *call) release() {
	if c.answer.Release != nil {
		c.answer.Release()
		c.answer = Answer{}
	}
}

// finish tells the outcome. Nobody else uses the flow any more.
func (f *Flow) finish() {
	for _, m := range f.Models {
		if m != nil {
			m.Leave()
		}
	}
	releaseAll := func() {
		for i := range f.steps {
			f.steps[i].release()
		}
	}
	if f.err != nil {
		releaseAll()
		f.Finished(Answers{}, f.err)
		return
	}
	a := Answers{Tensors: make([]*request.Tensor, len(f.tensors)), Batched: make([]bool, len(f.tensors)), Span: f.span, Release: releaseAll}
	for t := range f.tensors {
		if f.Need.Outputs[t] && f.tensors[t].there {
			a.Tensors[t], a.Batched[t] = &f.tensors[t].Tensor, f.tensors[t].batched
		}
	}
	f.Finished(a, nil)
}

// Runner takes the outcomes of an ensemble's steps, and starts the next steps, on one goroutine. So
// the instances of the steps' models never do, and no request has a goroutine of its own.
type Runner struct {
	ended chan struct{}

	mu          sync.Mutex
	work        *sync.Cond // a call has its outcome, or the runner is closed
	first, last *call
	closed      bool
}

// NewRunner starts a runner. Close ends it.
func NewRunner() *Runner {
	r := &Runner{ended: make(chan struct{})}
	r.work = sync.NewCond(&r.mu)
	go func() {
		defer close(r.ended)
		for c := r.next(); c != nil; c = r.next() {
			c.settle()
		}
	}()
	return r
}

// Close ends the runner. No request may be on its way. It may be called more than once.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	r.work.Signal()
	r.mu.Unlock()
	<-r.ended
}

func (r *Runner) push(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.first = c
	} else {
		r.last.next = c
	}
	r.last = c
	r.work.Signal()
}

// next waits for an outcome. It returns nil when the runner is closed.
func (r *Runner) next() *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.first == nil && !r.closed {
		r.work.Wait()
	}
	c := r.first
	if c != nil {
		if r.first = c.next; r.first == nil {
			r.last = nil
		}
		c.next = nil
	}
	return c
}
