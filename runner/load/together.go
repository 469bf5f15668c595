package load

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tuner/measure"
)

// Run makes the load on one model, as Together does.
func Run(ctx context.Context, o Options) (Result, error) { return run(ctx, o, newWaiter) }

func run(ctx context.Context, o Options, newWaiter func(now func() time.Duration, sleeps bool) waiter) (Result, error) {
	results, err := together(ctx, []Part{o.Part}, o.Windows, newWaiter)
	return results[0], err
}

// Together makes the loads of all parts, each with a loop of its own. It waits until they are all
// steady, cuts the windows, and ends the loads. It waits up to 2 s for the last answers. The results
// are in the order of the parts.
//
// Each part first has its ramp, and its WarmUpRequests. When all have ended, the loads begin
// together, and the timed warm-ups with them. A load whose warm-up is over continues until the
// others are warm. So all loads run from the first to the last instant of each window.
//
// A *HungError, *LostError or *RefusedError means that the server cannot be measured. The first such
// error of a part ends all loads. A *PartError then says which part it was, if that has a name. If the
// context ends, Together returns its cause. After any error, the results still have the complete
// windows. The same number is complete in all of them.
func Together(ctx context.Context, parts []Part, w Windows) ([]Result, error) {
	return together(ctx, parts, w, newWaiter)
}

func together(ctx context.Context, parts []Part, w Windows, newWaiter func(now func() time.Duration, sleeps bool) waiter) ([]Result, error) {
	if err := check(parts, w); err != nil {
		return make([]Result, len(parts)), err
	}
	g := &group{windows: w, epoch: time.Now()}
	for _, p := range parts {
		p.MaxInFlight = cmp.Or(p.MaxInFlight, defaultMaxInFlight)
		g.sessions = append(g.sessions, newSession(p, g.epoch, newWaiter))
	}
	defer g.close()
	err := g.each(ctx, (*session).prepare)
	if err == nil {
		err = g.load(ctx)
	}
	return g.results(), err
}

// sessions are loads that begin and end together, perhaps only one. One goroutine controls them.
type sessions []*session

// group is a run: the sessions of its parts, and what they have in common.
type group struct {
	sessions
	windows Windows
	epoch   time.Time
	cut     bool // the last window ended at its look
}

func (g *group) close() {
	for _, s := range g.sessions {
		s.close()
	}
}

// results returns the figures so far, in the order of the parts.
func (g *group) results() []Result {
	var results []Result
	for _, s := range g.sessions {
		r := s.result()
		r.Cut = g.cut
		results = append(results, r)
	}
	return results
}

// each calls f for all sessions at once. It returns when all calls have returned. The first error
// ends the context of the others, and is returned.
func (g *group) each(parent context.Context, f func(*session, context.Context) error) error {
	all, ctx := errgroup.WithContext(parent)
	for _, s := range g.sessions {
		all.Go(func() error { return f(s, ctx) })
	}
	return all.Wait()
}

// load makes the loads together: warm-up, then windows.
func (g *group) load(ctx context.Context) error {
	for _, s := range g.sessions {
		s.beginWarmUp()
	}
	endless := func(control func(context.Context) error) error {
		run := func(ctx context.Context, s *session) { s.loop.run(ctx, nil) }
		return g.during(ctx, run, func(ctx context.Context, _ <-chan struct{}) error { return control(ctx) })
	}
	if g.windows.Total == 0 {
		return endless(func(ctx context.Context) error {
			if err := g.warmUp(ctx); err != nil {
				return err
			}
			return g.measure(ctx)
		})
	}
	only := g.sessions[0]
	if !only.steady {
		if err := endless(g.warmUp); err != nil {
			return err
		}
	}
	return g.measureExactly(ctx, only)
}

// warmUp waits until all loads are warm.
func (g *group) warmUp(ctx context.Context) error {
	for !g.areWarm() {
		if !sleep(ctx, tick) {
			return context.Cause(ctx)
		}
		for _, s := range g.sessions {
			if err := s.watch(); err != nil {
				return err
			}
			if err := s.judgeWarmUp(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *group) areWarm() bool {
	for _, s := range g.sessions {
		if !s.isWarm() {
			return false
		}
	}
	return true
}

// all returns the windows of all parts so far.
func (g *group) all() [][]measure.Window {
	var all [][]measure.Window
	for _, s := range g.sessions {
		all = append(all, s.windows)
	}
	return all
}

// during makes loads while control runs, and waits for both. The end of control ends the loads.
// finished is closed if all loads end by themselves.
func (all sessions) during(parent context.Context, load func(context.Context, *session), control func(ctx context.Context, finished <-chan struct{}) error) error {
	ctx, stop := context.WithCancel(parent)
	defer stop()
	var loads sync.WaitGroup
	for _, s := range all {
		s.answered, s.active, s.silent = s.now(), s.now(), false
		loads.Go(func() { load(ctx, s) })
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		loads.Wait()
	}()
	err := control(ctx, finished)
	stop()
	if err == nil {
		all.drain(parent, finished)
	}
	all.abort(finished)
	for _, s := range all {
		s.gather()
	}
	return err
}

// drain waits for the answers to sent requests, until none has come for drainTime: a server that is behind works off its
// queue. What is given up before is cancelled, at which Tritons of 2024 and early 2025 may crash
// (triton-inference-server/server#7368, #8034).
func (all sessions) drain(ctx context.Context, finished <-chan struct{}) {
	for latest := all.now(); all.now() < latest+drainTime; {
		select {
		case <-finished:
			return
		case <-ctx.Done():
			return
		case <-time.After(tick):
			for _, s := range all {
				s.gather()
				s.expire()
				latest = max(latest, s.answered)
			}
		}
	}
}

// abort ends the requests in flight and waits for the end of the loads.
func (all sessions) abort(finished <-chan struct{}) {
	for _, s := range all {
		s.aborted.Store(true)
		defer s.aborted.Store(false)
	}
	for _, s := range all {
		for _, c := range s.loop.clients() {
			select {
			case <-finished:
				return
			default:
				c.interrupt()
			}
		}
	}
	<-finished
}

// await waits until finished is closed. Meanwhile it watches the server.
func (all sessions) await(ctx context.Context, finished <-chan struct{}) error {
	for {
		select {
		case <-finished:
			for _, s := range all {
				s.gather()
			}
			return context.Cause(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(tick):
			if err := all.watch(); err != nil {
				return err
			}
		}
	}
}

// wait waits until the instant. Meanwhile it watches the server. It does not gather at the end,
// which would delay the next step.
func (all sessions) wait(ctx context.Context, until time.Duration) error {
	for all.now() < until {
		if !sleep(ctx, min(tick, until-all.now())) {
			return context.Cause(ctx)
		}
		if all.now() >= until {
			break
		}
		if err := all.watch(); err != nil {
			return err
		}
	}
	return nil
}

// now returns the time since the beginning of the run, which all sessions have in common.
func (all sessions) now() time.Duration { return all[0].now() }

// watch gathers the completions of all loads. It fails if one had none for too long.
func (all sessions) watch() error {
	for _, s := range all {
		if err := s.watch(); err != nil {
			return err
		}
	}
	return nil
}
