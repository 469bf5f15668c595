package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"tuner/measure"
)

const (
	// tick is the interval at which completions are gathered, and the load's steadiness and the
	// server are checked.
	tick = 100 * time.Millisecond
	// refusedFor is the time for which a server may refuse every request before the load gives up.
	refusedFor = time.Second
	// lostAfter is the time for which a server may have no connection and refuse new ones before
	// the load gives up.
	lostAfter = time.Second
	// drainTime is the longest wait for the last answers after the end of sending.
	drainTime = 2 * time.Second
)

// session is one run: its load and the state so far. All instants are durations since epoch.
type session struct {
	options   Options
	newWaiter func(now func() time.Duration) waiter
	epoch     time.Time
	loop      loop
	link      link
	aborted   atomic.Bool  // the requests in flight were interrupted
	resent    atomic.Int64 // requests that were sent once more

	answered time.Duration // when the latest answer arrived, or when the server last owed none
	silent   bool          // a request has timed out since answered
	active   time.Duration // when a request was last in flight, or ended
	// longest time from sending to answer, since the end of the ramp once it is over; 0: no answer
	// yet
	longest  time.Duration
	slowest  time.Duration // the same over the whole run
	good     int           // completed requests so far, ramp included
	failures int           // failed requests so far, ramp included
	first    string        // text of the first failure

	warm   *warmUp // nil: no warm-up in progress
	steady bool    // the warm-up ended before its limit

	store    store
	current  *window  // the window in progress; nil: none
	closing  *window  // the window before it, while its records may still arrive
	held     []record // records of current, until it is certain that it counts
	windows  []measure.Window
	warmedUp time.Duration // when the first window began
	cut      bool          // the last window ended at its look
}

func (s *session) isOpen() bool { return s.options.Arrivals != nil }

func (s *session) now() time.Duration { return time.Since(s.epoch) }

func (s *session) close() {
	for _, c := range s.loop.clients() {
		c.disconnect()
	}
}

// result returns the figures so far.
func (s *session) result() Result {
	r := Result{Windows: s.windows, Begin: s.epoch, WarmUp: s.warmedUp, Resent: int(s.resent.Load()), Slowest: s.slowest, Cut: s.cut}
	if last := s.closing; last != nil && last.unfinished > 0 {
		r.Unfinished, r.Waited = last.unfinished, last.to-last.oldest
	}
	return r
}

// load makes the load: warm-up, then windows.
func (s *session) load(ctx context.Context) error {
	o := s.options
	s.warm, s.steady = newWarmUp(s.now()), o.WarmUp <= 0
	if o.WarmUpRequests > 0 {
		s.steady = true // the user has decided that this warm-up suffices
		if err := s.warmUpExactly(ctx); err != nil {
			return err
		}
	}
	endless := func(control func(context.Context) error) error {
		return s.during(ctx, func(ctx context.Context) { s.loop.run(ctx, nil) }, func(ctx context.Context, _ <-chan struct{}) error { return control(ctx) })
	}
	if o.Total == 0 {
		return endless(func(ctx context.Context) error {
			if err := s.warmUp(ctx); err != nil {
				return err
			}
			return s.measure(ctx)
		})
	}
	if !s.steady {
		if err := endless(s.warmUp); err != nil {
			return err
		}
	}
	return s.measureExactly(ctx)
}

// ramp lets the first n clients send two requests each, for each n of the ramp.
func (s *session) ramp(ctx context.Context, l *closedLoop) error {
	for _, n := range s.options.Ramp {
		if err := s.during(ctx, func(ctx context.Context) { l.ramp(ctx, n) }, s.await); err != nil {
			return err
		}
		if s.good == 0 {
			return s.refused(0)
		}
	}
	// a server may build something for each new batch size, so latencies of the ramp do not predict
	// later ones
	s.longest = 0
	return nil
}

// during makes a load while control runs, and waits for both. The end of control ends the load.
// finished is closed if the load ends by itself.
func (s *session) during(parent context.Context, load func(context.Context), control func(ctx context.Context, finished <-chan struct{}) error) error {
	ctx, stop := context.WithCancel(parent)
	defer stop()
	s.answered, s.active, s.silent = s.now(), s.now(), false
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		load(ctx)
	}()
	err := control(ctx, finished)
	stop()
	if err == nil {
		s.drain(parent, finished)
	}
	s.abort(finished)
	s.gather()
	return err
}

// drain waits for the answers to sent requests, for at most drainTime.
func (s *session) drain(ctx context.Context, finished <-chan struct{}) {
	for deadline := s.now() + drainTime; s.now() < deadline; {
		select {
		case <-finished:
			return
		case <-ctx.Done():
			return
		case <-time.After(tick):
			s.gather()
			s.expire()
		}
	}
}

// abort ends the requests in flight and waits for the end of the load.
func (s *session) abort(finished <-chan struct{}) {
	s.aborted.Store(true)
	defer s.aborted.Store(false)
	for _, c := range s.loop.clients() {
		select {
		case <-finished:
			return
		default:
			c.interrupt()
		}
	}
	<-finished
}

// await waits until finished is closed. Meanwhile it watches the server.
func (s *session) await(ctx context.Context, finished <-chan struct{}) error {
	for {
		select {
		case <-finished:
			s.gather()
			return context.Cause(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(tick):
			if err := s.watch(); err != nil {
				return err
			}
		}
	}
}

// wait waits until the instant. Meanwhile it watches the server. It does not gather at the end,
// which would delay the next step.
func (s *session) wait(ctx context.Context, until time.Duration) error {
	for s.now() < until {
		if !sleep(ctx, min(tick, until-s.now())) {
			return context.Cause(ctx)
		}
		if s.now() >= until {
			break
		}
		if err := s.watch(); err != nil {
			return err
		}
	}
	return nil
}

// watch gathers the completions. It fails if there were none for too long.
func (s *session) watch() error {
	s.gather()
	owed := s.expire()
	if owed {
		s.active = s.now()
	}
	// A closed loop always has a request in flight, or will have one soon. Otherwise its
	// connections belong to clients that have sent all their requests.
	if err := s.link.lost(s.now(), s.isOpen() || s.now() < s.active+lostAfter); err != nil {
		return err
	}
	if !owed && !s.silent {
		s.answered = s.now() // the server owes no answer
	}
	patience := s.options.Patience
	if s.longest == 0 {
		patience = max(patience, s.options.First)
	}
	if s.options.Timeout == 0 {
		patience = max(patience, 20*s.longest)
	}
	if waited := s.now() - s.answered; waited > patience {
		return &HungError{waited}
	}
	return nil
}

// expire ends the requests that have been in flight for too long. It reports whether any request is
// in flight or waits to be sent.
func (s *session) expire() bool {
	timeout, owed := s.options.Timeout, s.loop.waiting() > 0
	for _, c := range s.loop.clients() {
		for i := range c.slots {
			owed = owed || c.slots[i].waiting >= 0
		}
		if timeout > 0 {
			c.expire(s.now() - timeout)
		}
	}
	return owed
}

// gather takes over the records of the clients.
func (s *session) gather() {
	s.loop.gather(s.arrive, s.countRecord)
}

// arrive counts an instant of the schedule.
func (s *session) arrive(a arrival) {
	if s.current == nil || a.at < s.warmedUp {
		return
	}
	w := s.current
	if a.at < w.from && s.closing != nil {
		w = s.closing
	}
	w.counts.Scheduled++
	if a.dropped {
		w.counts.Dropped++
	}
}

// countRecord counts a record.
func (s *session) countRecord(r record) {
	s.trackHealth(r)
	if s.closing != nil {
		s.closing.addInFlight(r)
	}
	if s.current == nil || r.end < s.warmedUp {
		return
	}
	s.current.addInFlight(r)
	if s.closing != nil && r.end < s.current.from {
		s.closing.addEnded(r)
		s.export(r)
		return
	}
	s.current.addEnded(r)
	if s.closing != nil {
		s.held = append(s.held, r)
		return
	}
	s.export(r)
}

// trackHealth updates the state of the server's health from a record.
func (s *session) trackHealth(r record) {
	switch r.outcome {
	case aborted:
		return
	case completed:
		s.good++
		if s.warm != nil && r.end >= s.warm.from {
			s.warm.addLatency(r.end, r.end-s.begin(r))
		}
	case failed, timedOut:
		s.failures++
		if s.first == "" {
			s.first = r.more.failure.Error()
		}
	}
	s.active = max(s.active, r.end)
	if s.silent = r.outcome == timedOut; !s.silent {
		s.answered = max(s.answered, r.end)
		s.longest, s.slowest = max(s.longest, r.end-r.sent), max(s.slowest, r.end-r.sent)
	}
}

// begin returns the instant from which a request's latency counts.
func (s *session) begin(r record) time.Duration {
	if s.isOpen() {
		return r.ready
	}
	return r.sent
}

// export passes a record to Options.Sink.
func (s *session) export(r record) {
	if s.options.Sink == nil || r.outcome == aborted {
		return
	}
	out := Record{Request: r.request, Scheduled: s.begin(r), Sent: r.sent, Failed: r.outcome != completed}
	if !out.Failed {
		if r.more != nil {
			out.Responses = r.more.earlier
		}
		if r.responses > 0 {
			out.Responses = append(out.Responses, r.end)
		}
	}
	s.options.Sink(out)
}

// refused returns the error of a warm-up without a successful request. before is the number of
// failures before it.
func (s *session) refused(before int) error {
	return &RefusedError{Requests: s.failures - before, First: s.first}
}

// warmUp waits until the load is steady: at most for the limit, and at least until the queue has
// filled. Answers to the ramp do not count. They show neither that the server takes the load, nor how long
// the windows must be.
func (s *session) warmUp(ctx context.Context) error {
	if s.steady { // there is no warm-up, or it is over
		return nil
	}
	begin, good, failures := s.warm.from, s.good, s.failures
	least := max(1, s.options.Load.Concurrency)
	isFilled := func() bool { return s.good > good && s.good-good+s.failures-failures >= least }
	for !s.steady && (s.now() < begin+s.options.WarmUp || !isFilled()) {
		if !sleep(ctx, tick) {
			return context.Cause(ctx)
		}
		if err := s.watch(); err != nil {
			return err
		}
		if period := s.options.Period; period > 0 { // a course that repeats has no steady state
			s.steady = s.now()-begin >= period && isFilled()
		} else {
			s.steady = isFilled() && s.warm.isSteady(s.now()-begin)
		}
		if s.good == good && s.failures > failures && !s.silent && s.now() > begin+refusedFor {
			return s.refused(failures)
		}
	}
	return nil
}

// warmUpExactly sends exactly WarmUpRequests requests.
func (s *session) warmUpExactly(ctx context.Context) error {
	good, failures := s.good, s.failures
	load := func(ctx context.Context) { s.loop.run(ctx, newTickets(s.options.WarmUpRequests)) }
	if err := s.during(ctx, load, s.await); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	if s.good == good {
		return s.refused(failures)
	}
	return nil
}
