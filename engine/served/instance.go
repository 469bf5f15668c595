package served

import (
	"tuner/engine/hostpolicy"
	"tuner/engine/ratelimit"
	"tuner/engine/scheduler"
	"tuner/engine/session"
)

// Instance is a session with the policy of its thread, and what it shares with other models.
type Instance struct {
	Session session.Session
	Policy  hostpolicy.Policy
	Claim   *ratelimit.Claim // nil: nothing
}

// executor returns what runs batches on the instance.
func (in *Instance) executor() scheduler.Executor[*job] {
	var e scheduler.Executor[*job] = &executor{session: in.Session}
	if apart, ok := in.Session.(session.ApartSession); ok {
		e = &apartExecutor{session: apart}
	}
	if in.Claim != nil {
		e = &limitedExecutor{e, in.Claim}
	}
	if !in.Policy.IsAny() {
		e = &boundExecutor{e, in.Policy}
	}
	return e
}

// limitedExecutor is an executor that runs only while it holds resources. The wait counts as time in
// the queue.
type limitedExecutor struct {
	scheduler.Executor[*job]
	claim *ratelimit.Claim
}

// Execute implements scheduler.Executor.
func (l *limitedExecutor) Execute(items []scheduler.Item[*job]) {
	l.claim.Acquire()
	defer l.claim.Release()
	l.Executor.Execute(items)
}

// boundExecutor is an executor whose thread is bound by a host policy.
type boundExecutor struct {
	scheduler.Executor[*job]
	policy hostpolicy.Policy
}

// Bind is called on the thread that will execute.
func (b *boundExecutor) Bind() { _ = b.policy.Bind() } // it succeeded when the session was made
