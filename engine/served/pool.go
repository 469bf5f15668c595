package served

import (
	"errors"
	"sync"

	"tuner/engine/batching"
	"tuner/engine/ensemble"
	"tuner/engine/scheduler"
	"tuner/engine/sequence"
	"tuner/engine/state"
	"tuner/model/modelconfig"
)

// Pool has the instances of a model and their scheduler. Models that differ only in the batching of
// requests share one.
type Pool struct {
	scheduler *scheduler.Scheduler[*job] // nil for an ensemble
	sequences *sequence.Scheduler[*job]  // in place of scheduler, if requests form sequences
	instances []Instance                 // at least one; none for an ensemble
	runner    *ensemble.Runner           // of an ensemble; nil otherwise
	files     *Shared                    // the temporary folder of the model's files, if there is one
	// requests between Start and Wait; none is added after the pool has been retired
	users sync.WaitGroup
}

// Waiting says how a model's requests wait for an instance, beyond its configuration.
type Waiting struct {
	Hold        int // requests that a batcher waits for before its first batch; 0: none
	HoldBacklog int // the same for the backlog of sequences
	Timer       func(call func()) scheduler.Timer
}

// NewPool makes the pool of a model of configuration c. added is nil if its requests form no
// sequences.
func NewPool(c *modelconfig.Config, added *state.Spec, instances []Instance, w Waiting) *Pool {
	p := &Pool{instances: instances}
	if added != nil {
		p.sequences = newSequences(c, added, instances, w)
		return p
	}
	set := p.batching(c)
	set.Hold = w.Hold
	var executors []scheduler.Executor[*job]
	for i := range instances {
		executors = append(executors, instances[i].executor())
	}
	p.scheduler = scheduler.New(set, executors, w.Timer)
	return p
}

// Keep has the pool hold the temporary folder of the model's files. nil: they lie in a repository.
func (p *Pool) Keep(files *Shared) {
	if files != nil {
		files.users.Add(1)
		p.files = files
	}
}

// Enter tells the pool of a request that will be started, so that it is not retired before the
// request has been answered.
func (p *Pool) Enter() { p.users.Add(1) }

// Pending returns the number of requests that wait for an instance. Those of an ensemble wait in the
// pools of its models.
func (p *Pool) Pending() int {
	switch {
	case p.sequences != nil:
		return p.sequences.Pending()
	case p.runner != nil:
		return 0
	}
	return p.scheduler.Pending()
}

// IO returns the inputs and outputs of the model's file. An ensemble has none.
func (p *Pool) IO() modelconfig.ModelIO { return p.instances[0].Session.IO() }

// Reconfigure changes the batching. That of sequences never changes in a pool.
func (p *Pool) Reconfigure(c *modelconfig.Config) {
	if p.scheduler != nil {
		p.scheduler.Reconfigure(p.batching(c))
	}
}

// batching returns how the requests of a model of configuration c are batched. Instances that share
// resources with other models take their batches at once: an idle one may have to wait for a resource.
func (p *Pool) batching(c *modelconfig.Config) scheduler.Settings {
	set := batching.Settings(c)
	set.Gather = p.instances[0].Claim == nil // all instances have one, or none
	return set
}

// Retire waits for the last request and frees the sessions. No request waits for others that may come:
// they go to another pool.
func (p *Pool) Retire() error {
	switch {
	case p.sequences != nil:
		p.sequences.Retire()
	case p.scheduler != nil:
		p.scheduler.Unhold()
	}
	p.users.Wait()
	switch {
	case p.runner != nil:
		p.runner.Close()
	case p.sequences != nil:
		p.sequences.Close()
	default:
		p.scheduler.Close()
	}
	defer p.files.Release()
	return CloseInstances(p.instances)
}

// CloseInstances frees the sessions of instances that no pool has.
func CloseInstances(instances []Instance) error {
	var errs []error
	for _, in := range instances {
		errs = append(errs, in.Session.Close())
		in.Claim.Remove()
	}
	return errors.Join(errs...)
}
