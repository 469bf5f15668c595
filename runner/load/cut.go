package load

import (
	"context"
	"fmt"
	"math"
	"time"

	"tuner/measure"
)

// measure calls Edge at the edges of the windows while the loads continue.
func (g *group) measure(ctx context.Context) error {
	var p99 []time.Duration
	for _, s := range g.sessions {
		p99 = append(p99, s.warm.quantile(0.99))
		s.warm = nil
	}
	begin := g.now()
	if err := g.windows.Edge(ctx, 0); err != nil {
		return err
	}
	length, err := g.length(p99)
	if err != nil {
		return err
	}
	for _, s := range g.sessions {
		s.warmedUp, s.current = begin, s.newWindow(begin, length)
	}
	for {
		if err := g.pass(ctx, length); err != nil {
			return err
		}
		edge := g.now()
		for _, s := range g.sessions {
			s.next(edge, length)
		}
		if err := g.windows.Edge(ctx, len(g.sessions[0].windows)+1); err != nil {
			return err
		}
		if err := g.settle(ctx, edge, length); err != nil {
			return err
		}
		if g.joinAll() {
			length *= 2
		}
		if g.cut || !g.windows.More(g.all()) {
			return g.answer(ctx)
		}
		for _, s := range g.sessions {
			s.release()
		}
	}
}

// length calls Windows.Length. It returns 0 if windows end by the number of requests.
func (g *group) length(p99 []time.Duration) (time.Duration, error) {
	if g.windows.Requests > 0 {
		return 0, nil
	}
	length := g.windows.Length(p99)
	if length < subWindows {
		return 0, fmt.Errorf("cannot cut windows of %v", length)
	}
	return length, nil
}

// pass waits for the end of the current windows.
func (g *group) pass(ctx context.Context, length time.Duration) error {
	if length > 0 {
		if err := g.askEnough(ctx, length); err != nil || g.cut {
			return err
		}
		return g.wait(ctx, g.sessions[0].current.from+length)
	}
	for !g.areFull() {
		if !sleep(ctx, tick) {
			return context.Cause(ctx)
		}
		if err := g.watch(); err != nil {
			return err
		}
	}
	return nil
}

// askEnough calls Windows.Enough within the current windows, at measure.Look of their length.
func (g *group) askEnough(ctx context.Context, length time.Duration) error {
	if g.windows.Enough == nil {
		return nil
	}
	at := g.sessions[0].current.from + time.Duration(measure.Look*float64(length))
	if err := g.wait(ctx, at); err != nil {
		return err
	}
	now := g.now()
	if err := g.watch(); err != nil {
		return err
	}
	var soFar []measure.Window
	for _, s := range g.sessions {
		soFar = append(soFar, s.current.soFar(now, s.batch()))
	}
	g.cut = g.windows.Enough(soFar)
	return nil
}

// areFull reports whether the current windows, whose length is not fixed, must end. Failed requests
// count too: otherwise a server that refuses all requests would never end them.
func (g *group) areFull() bool {
	if budget := g.windows.Budget; budget > 0 && g.now()-g.sessions[0].warmedUp >= budget {
		return true
	}
	for _, s := range g.sessions {
		if counts := s.current.counts; counts.Requests+counts.Errors < g.windows.Requests {
			return false
		}
	}
	return true
}

// settle waits until all records of the windows that ended at edge have arrived, and completes them.
func (g *group) settle(ctx context.Context, edge, length time.Duration) error {
	pause := tick
	if length > 0 {
		pause = min(tick, length/2)
	}
	if err := g.wait(ctx, edge+pause); err != nil {
		return err
	}
	if err := g.watch(); err != nil {
		return err
	}
	for _, s := range g.sessions {
		s.settle()
	}
	return nil
}

// answer checks that the server is still there at the end. If a part had no answer in the last
// window, it waits for one.
func (g *group) answer(ctx context.Context) error {
	for _, s := range g.sessions {
		last := s.windows[len(s.windows)-1].Start
		for s.answered < last {
			if err := g.wait(ctx, g.now()+tick); err != nil {
				return err
			}
			if err := g.watch(); err != nil {
				return err
			}
		}
		if err := s.link.lost(s.now()+lostAfter, true); err != nil {
			return s.options.named(err)
		}
	}
	return nil
}

// measureExactly sends exactly Windows.Total requests, which make one window. If the run fails, the
// window has the requests that were answered before.
func (g *group) measureExactly(ctx context.Context, s *session) error {
	s.warm = nil
	if err := g.windows.Edge(ctx, 0); err != nil {
		return err
	}
	s.warmedUp = s.now()
	s.current = s.newWindow(s.warmedUp, 0)
	err := s.alone(ctx, func(ctx context.Context) { s.loop.run(ctx, newTickets(g.windows.Total)) })
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
	return g.windows.Edge(ctx, 1)
}

func (s *session) newWindow(from, length time.Duration) *window {
	return newWindow(from, length, s.isOpen(), &s.store)
}

// next ends the current window and begins another.
func (s *session) next(at, length time.Duration) {
	s.current.to = at
	s.closing, s.current = s.current, s.newWindow(at, length)
}

// settle completes the closed window.
func (s *session) settle() {
	var waiting []time.Duration
	for _, c := range s.loop.clients() {
		for i := range c.slots {
			if sent := c.slots[i].waiting; sent >= 0 && sent < s.closing.to {
				waiting = append(waiting, sent)
			}
		}
	}
	w := s.closing.close(s.batch(), waiting)
	if !s.closing.grows {
		w.Periods = s.periods(w.Duration)
	}
	s.windows = append(s.windows, w)
	s.judge()
}

// periods returns the number of periods of the arrivals that a window of fixed length spans; 0
// without a period.
func (s *session) periods(length time.Duration) int {
	if s.options.Period <= 0 {
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
