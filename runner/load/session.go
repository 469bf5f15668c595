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
	// drainTime is the longest wait for another answer after the end of sending.
	drainTime = 2 * time.Second
)

// session is the load of one part, and its state so far. All instants are durations since epoch,
// which all sessions of a run have in common.
type session struct {
	options   Part
	newWaiter func(now func() time.Duration, sleeps bool) waiter
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
}

func newSession(p Part, epoch time.Time, newWaiter func(now func() time.Duration, sleeps bool) waiter) *session {
	s := &session{options: p, newWaiter: newWaiter, epoch: epoch}
	s.loop = &closedLoop{session: s}
	if s.isOpen() {
		s.loop = newOpenLoop(s)
	}
	return s
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
	r := Result{Windows: s.windows, Begin: s.epoch, WarmUp: s.warmedUp, Resent: int(s.resent.Load()), Slowest: s.slowest}
	if last := s.closing; last != nil && last.unfinished > 0 {
		r.Unfinished, r.Waited = last.unfinished, last.to-last.oldest
	}
	return r
}

// prepare opens the connections. Then it makes the load of the ramp, and of a warm-up with a given
// number of requests.
func (s *session) prepare(ctx context.Context) error {
	if err := s.loop.dial(ctx); err != nil {
		return s.options.named(err)
	}
	if l, isClosed := s.loop.(*closedLoop); isClosed {
		if err := s.ramp(ctx, l); err != nil {
			return err
		}
	}
	if s.options.WarmUpRequests > 0 {
		return s.warmUpExactly(ctx)
	}
	return nil
}

// ramp lets the first n clients send two requests each, for each n of the ramp.
func (s *session) ramp(ctx context.Context, l *closedLoop) error {
	for _, n := range s.options.Ramp {
		if err := s.alone(ctx, func(ctx context.Context) { l.ramp(ctx, n) }); err != nil {
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

// alone makes a load that ends by itself, without those of other sessions. It waits for the end.
func (s *session) alone(ctx context.Context, load func(context.Context)) error {
	one := sessions{s}
	return one.during(ctx, func(ctx context.Context, _ *session) { load(ctx) }, one.await)
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
		return s.options.named(err)
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
		return s.options.named(&HungError{waited})
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

// export passes a record to Part.Sink.
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
	return s.options.named(&RefusedError{Requests: s.failures - before, First: s.first})
}

// warmUpExactly sends exactly WarmUpRequests requests.
func (s *session) warmUpExactly(ctx context.Context) error {
	s.warm, s.steady = newWarmUp(s.now()), true // the user has decided that this warm-up suffices
	good, failures := s.good, s.failures
	load := func(ctx context.Context) { s.loop.run(ctx, newTickets(s.options.WarmUpRequests)) }
	if err := s.alone(ctx, load); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	if s.good == good {
		return s.refused(failures)
	}
	return nil
}

// beginWarmUp begins the timed warm-up, unless there was another one.
func (s *session) beginWarmUp() {
	if s.warm != nil {
		return
	}
	s.warm, s.steady = newWarmUp(s.now()), s.options.WarmUp <= 0
	s.warm.good, s.warm.failures = s.good, s.failures
}

// isWarm reports whether the warm-up is over: the load is steady, or the limit has passed and the
// queue has filled. Answers to the ramp do not count. They show neither that the server takes the
// load, nor how long the windows must be.
func (s *session) isWarm() bool {
	return s.steady || s.now() >= s.warm.from+s.options.WarmUp && s.isFilled()
}

// isFilled reports whether at least one request of the warm-up was answered, and in a closed loop as
// many have ended as are in flight.
func (s *session) isFilled() bool {
	least := max(1, s.options.Load.Concurrency)
	good, failures := s.good-s.warm.good, s.failures-s.warm.failures
	return good > 0 && good+failures >= least
}

// judgeWarmUp notes whether the load has become steady. It fails if the server refuses every
// request.
func (s *session) judgeWarmUp() error {
	if s.steady {
		return nil
	}
	elapsed := s.now() - s.warm.from
	if period := s.options.Period; period > 0 { // a course that repeats has no steady state
		s.steady = elapsed >= period && s.isFilled()
	} else {
		s.steady = s.isFilled() && s.warm.isSteady(elapsed)
	}
	if s.good == s.warm.good && s.failures > s.warm.failures && !s.silent && elapsed > refusedFor {
		return s.refused(s.warm.failures)
	}
	return nil
}
