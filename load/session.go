package load

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// tick is how often the completions are gathered, the load's steadiness is judged and the server is looked at.
const tick = 100 * time.Millisecond

// refusedFor is how long a server may refuse every request before the load gives up.
const refusedFor = time.Second

// session is one run: its workers, and what they completed so far. All instants are durations since epoch.
type session struct {
	options  Options
	epoch    time.Time
	workers  []*worker
	refusals refusals

	records  []record      // gathered so far, roughly in the order of their ends
	answered time.Duration // when the latest answer came
	longest  time.Duration // longest latency so far
	answers  int           // answered requests so far, failed ones included
	good     int           // answered without error so far
	warm     int           // records of the warm-up, without the ramp

	edges  []time.Duration // of the windows
	steady bool            // whether the warm-up ended before its cap
}

func (s *session) now() time.Duration { return time.Since(s.epoch) }

func (s *session) dial(ctx context.Context) error {
	for i := range s.options.Load.Concurrency {
		sender, err := s.options.Dial(ctx, i)
		if err != nil {
			return fmt.Errorf("cannot connect client %d: %w", i, err)
		}
		s.workers = append(s.workers, &worker{sender: sender, now: s.now, refusals: &s.refusals, log: newRecordLog()})
	}
	return nil
}

func (s *session) close() {
	for _, w := range s.workers {
		_ = w.sender.Close() // the figures are in; a connection that does not close well changes nothing
	}
}

// ramp has the first n workers send two requests each, for each n of the ramp.
func (s *session) ramp(ctx context.Context) error {
	for _, n := range s.options.Ramp {
		workers := s.workers[:min(n, len(s.workers))]
		if err := s.during(ctx, workers, (*worker).sendTwice, s.await); err != nil {
			return err
		}
		if s.good == 0 {
			return s.refused()
		}
	}
	return nil
}

// load is the load itself: warm-up, then windows.
func (s *session) load(ctx context.Context) error {
	return s.during(ctx, s.workers, (*worker).loop, func(ctx context.Context, _ <-chan struct{}) error {
		if err := s.warmUp(ctx); err != nil {
			return err
		}
		return s.measure(ctx)
	})
}

// during has workers work while control runs, and waits for both; the end of control ends the work. finished is closed
// when all workers are done by themselves.
func (s *session) during(ctx context.Context, workers []*worker, work func(*worker, context.Context),
	control func(ctx context.Context, finished <-chan struct{}) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.answered = s.now()
	var busy sync.WaitGroup
	for _, w := range workers {
		busy.Go(func() { work(w, ctx) })
	}
	finished := make(chan struct{})
	go func() {
		busy.Wait()
		close(finished)
	}()
	err := control(ctx, finished)
	cancel()
	<-finished
	s.gather()
	return err
}

// await waits until finished is closed, and watches the server meanwhile.
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

// sleep waits until the instant, and watches the server meanwhile.
func (s *session) sleep(ctx context.Context, until time.Duration) error {
	for s.now() < until {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(tick, until-s.now())):
			if err := s.watch(); err != nil {
				return err
			}
		}
	}
	return nil
}

// watch gathers the completions, and fails when there were none for too long.
func (s *session) watch() error {
	s.gather()
	if waited := s.now() - s.answered; waited > max(s.options.Patience, 20*s.longest) {
		return &HungError{waited}
	}
	return nil
}

// gather takes over what the workers have completed.
func (s *session) gather() {
	for _, w := range s.workers {
		for r := range w.log.drain() {
			s.records = append(s.records, r)
			if r.outcome == aborted {
				continue
			}
			s.answers++
			s.answered = max(s.answered, r.end)
			s.longest = max(s.longest, r.latency)
			if r.outcome == completed {
				s.good++
			}
		}
	}
}

// warmUp waits until the load is steady: at most for the cap, but at least for an answer.
func (s *session) warmUp(ctx context.Context) error {
	begin, first := s.now(), len(s.records)
	for !s.steady && (s.now() < begin+s.options.WarmUp || s.answers == 0) {
		if err := s.sleep(ctx, s.now()+tick); err != nil {
			return err
		}
		s.warm = len(s.records) - first
		s.steady = isSteady(s.records[first:], s.now()-begin)
		if s.good == 0 && s.answers > 0 && s.now() > begin+refusedFor {
			return s.refused()
		}
	}
	return nil
}

// measure passes the windows' edges.
func (s *session) measure(ctx context.Context) error {
	recent := s.records[len(s.records)-s.warm/2:] // the later half of the warm-up: nothing cold in it
	if err := s.edge(ctx); err != nil {
		return err
	}
	length := s.options.Length(latencyQuantile(recent, 0.99))
	if length <= 0 {
		return fmt.Errorf("cannot cut windows of %v", length)
	}
	for range s.options.Windows {
		if err := s.sleep(ctx, s.edges[len(s.edges)-1]+length); err != nil {
			return err
		}
		if err := s.edge(ctx); err != nil {
			return err
		}
	}
	return s.answer(ctx)
}

// answer makes sure that the server is still alive when nothing was answered in the last window.
func (s *session) answer(ctx context.Context) error {
	for s.answered < s.edges[len(s.edges)-2] {
		if err := s.sleep(ctx, s.now()+tick); err != nil {
			return err
		}
	}
	return nil
}

// edge ends a window and begins the next.
func (s *session) edge(ctx context.Context) error {
	s.edges = append(s.edges, s.now())
	return s.options.Edge(ctx, len(s.edges)-1)
}

// refused is the error of a warm-up without a good request.
func (s *session) refused() error {
	return &RefusedError{Requests: s.answers - s.good, First: s.refusals.first(0, s.now()+1)}
}
