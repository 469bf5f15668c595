package load

import (
	"context"
	"sync"
	"time"
)

// A worker that is refused waits before it tries again: briefly at first, then twice as long each time.
const (
	shortestPause = time.Millisecond
	longestPause  = 100 * time.Millisecond
)

// worker is one client of a closed loop: it sends a request, waits for the answer, sends the next.
type worker struct {
	sender   Sender
	now      func() time.Duration
	log      *recordLog
	refusals *refusals
}

// loop sends until the context ends.
func (w *worker) loop(ctx context.Context) {
	pause := shortestPause
	for ctx.Err() == nil {
		if w.send(ctx) != failed {
			pause = shortestPause
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

func (w *worker) sendTwice(ctx context.Context) {
	w.send(ctx)
	w.send(ctx)
}

// send sends one request and records how it went.
func (w *worker) send(ctx context.Context) outcome {
	begin := w.now()
	err := w.sender.Send(ctx)
	r := record{end: w.now(), outcome: completed}
	r.latency = r.end - begin
	switch {
	case err != nil && ctx.Err() != nil:
		r.outcome = aborted
	case err != nil:
		r.outcome = failed
		w.refusals.add(r.end, err)
	}
	w.log.append(r)
	return r.outcome
}

// refusals keeps the texts of failed requests. Workers pause after each, so that the lock is no burden and the list stays
// short.
type refusals struct {
	mu   sync.Mutex
	list []refusal
}

type refusal struct {
	at   time.Duration
	text string
}

func (r *refusals) add(at time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, refusal{at, err.Error()})
}

// first is the text of the earliest failure in an interval; "" for none.
func (r *refusals) first(from, to time.Duration) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var earliest refusal
	for _, f := range r.list {
		if from <= f.at && f.at < to && (earliest.text == "" || f.at < earliest.at) {
			earliest = f
		}
	}
	return earliest.text
}
