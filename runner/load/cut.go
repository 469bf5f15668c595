package load

import (
	"context"
	"fmt"
	"math"
	"time"

	"tuner/measure"
)

// measure calls Edge at the edges of the windows while the load continues.
func (s *session) measure(ctx context.Context) error {
	p99 := s.warm.quantile(0.99)
	s.warm = nil
	begin := s.now()
	if err := s.options.Edge(ctx, 0); err != nil {
		return err
	}
	length, err := s.length(p99)
	if err != nil {
		return err
	}
	s.warmedUp, s.current = begin, s.newWindow(begin, length)
	for {
		if err := s.pass(ctx, length); err != nil {
			return err
		}
		s.next(s.now(), length)
		if err := s.options.Edge(ctx, len(s.windows)+1); err != nil {
			return err
		}
		if err := s.settle(ctx, length); err != nil {
			return err
		}
		if s.joinAll() {
			length *= 2
		}
		if s.cut || !s.options.More(s.windows) {
			return s.answer(ctx)
		}
		s.release()
	}
}

func (s *session) newWindow(from, length time.Duration) *window {
	return newWindow(from, length, s.isOpen(), &s.store)
}

// length calls Options.Length. It returns 0 if windows end by the number of requests.
func (s *session) length(p99 time.Duration) (time.Duration, error) {
	if s.options.Requests > 0 {
		return 0, nil
	}
	length := s.options.Length(p99)
	if length < subWindows {
		return 0, fmt.Errorf("cannot cut windows of %v", length)
	}
	return length, nil
}

// pass waits for the end of the current window.
func (s *session) pass(ctx context.Context, length time.Duration) error {
	if length > 0 {
		if err := s.askEnough(ctx, length); err != nil || s.cut {
			return err
		}
		return s.wait(ctx, s.current.from+length)
	}
	for !s.isFull() {
		if !sleep(ctx, tick) {
			return context.Cause(ctx)
		}
		if err := s.watch(); err != nil {
			return err
		}
	}
	return nil
}

// askEnough calls Options.Enough within the current window, at measure.Look of its length.
func (s *session) askEnough(ctx context.Context, length time.Duration) error {
	if s.options.Enough == nil {
		return nil
	}
	at := s.current.from + time.Duration(measure.Look*float64(length))
	if err := s.wait(ctx, at); err != nil {
		return err
	}
	now := s.now()
	if err := s.watch(); err != nil {
		return err
	}
	s.cut = s.options.Enough(s.current.soFar(now, s.batch()))
	return nil
}

// isFull reports whether the current window, whose length is not fixed, must end. Failed requests
// count too: otherwise a server that refuses all requests would never end it.
func (s *session) isFull() bool {
	o, w := s.options, s.current
	return w.counts.Requests+w.counts.Errors >= o.Requests || o.Budget > 0 && s.now()-s.warmedUp >= o.Budget
}

// next ends the current window and begins another.
func (s *session) next(at, length time.Duration) {
	s.current.to = at
	s.closing, s.current = s.current, s.newWindow(at, length)
}

// settle waits until all records of the closed window have arrived, and completes it.
func (s *session) settle(ctx context.Context, length time.Duration) error {
	pause := tick
	if length > 0 {
		pause = min(tick, length/2)
	}
	if err := s.wait(ctx, s.closing.to+pause); err != nil {
		return err
	}
	if err := s.watch(); err != nil {
		return err
	}
	var waiting []time.Duration
	for _, c := range s.loop.clients() {
		for i := range c.slots {
			if sent := c.slots[i].waiting; sent >= 0 && sent < s.closing.to {
				waiting = append(waiting, sent)
			}
		}
	}
	w := s.closing.close(s.batch(), waiting)
	w.Periods = s.periods(w.Duration)
	s.windows = append(s.windows, w)
	s.judge()
	return nil
}

// periods returns the number of periods of the arrivals that a window spans; 0 without a period.
func (s *session) periods(length time.Duration) int {
	if s.options.Period <= 0 || s.options.Requests > 0 {
		return 0
	}
	return int(math.Round(length.Seconds() / s.options.Period.Seconds()))
}

func (s *session) batch() int { return max(1, s.options.Load.BatchSize) }

// judge sets the flags of the last window. It does not require a steady load after a warm-up that
// only fills the queue, and of arrivals that repeat.
func (s *session) judge() {
	s.windows[len(s.windows)-1].Flags = flags(s.windows, s.options.Load.Concurrency, s.steady || s.options.Unsettled || s.options.Period > 0)
}

// release passes on the records of the current window, since it counts now.
func (s *session) release() {
	s.closing = nil
	for _, r := range s.held {
		s.export(r)
	}
	s.held = s.held[:0]
}

// answer checks that the server is still there at the end. If nothing was answered in the last
// window, it waits for an answer.
func (s *session) answer(ctx context.Context) error {
	last := s.windows[len(s.windows)-1].Start
	for s.answered < last {
		if err := s.wait(ctx, s.now()+tick); err != nil {
			return err
		}
		if err := s.watch(); err != nil {
			return err
		}
	}
	return s.link.lost(s.now()+lostAfter, true)
}

// measureExactly sends exactly Options.Total requests, which make one window. If the run fails, the
// window has the requests that were answered before.
func (s *session) measureExactly(ctx context.Context) error {
	s.warm = nil
	if err := s.options.Edge(ctx, 0); err != nil {
		return err
	}
	s.warmedUp = s.now()
	s.current = s.newWindow(s.warmedUp, 0)
	load := func(ctx context.Context) { s.loop.run(ctx, newTickets(s.options.Total)) }
	err := s.during(ctx, load, s.await)
	w := s.current
	if err != nil && w.counts.Requests+w.counts.Errors == 0 {
		return err
	}
	w.to = max(w.lastEnd, w.from+1)
	s.windows = append(s.windows, w.closeExactly(s.batch()))
	s.judge()
	if err != nil {
		return err
	}
	return s.options.Edge(ctx, 1)
}
