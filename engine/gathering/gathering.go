// Package gathering decides how long an idle instance leaves a batch to grow for clients that come
// back. A client that waits for its answers sends the next request some hundred microseconds after
// one. An instance that takes its next batch at once misses it, and runs a smaller batch.
//
// The package has neither a clock nor a queue. Its users tell what happens, and when: the engine's
// scheduler, and the simulation of the search. Instants are durations since any origin. It waits for
// nobody until it has seen that clients come back, and it sees that without waiting. So a load whose
// requests do not depend on answers is never waited for.
package gathering

import (
	"math"
	"time"
)

const (
	// part of a run is the longest wait: 1/20. At 8 requests in flight over HTTP it makes MiniLM's
	// batches as large as Triton's (lab/docs/engine.md).
	part = 20
	// shortest is the shortest wait that is tried. A timer is some 50 µs late (package alarm). So
	// nothing waits after runs below 2 ms.
	shortest = 100 * time.Microsecond
	// memory is the number of answered rows after which the ratio of returns consists of newer ones by
	// 1 − 1/e.
	memory = 64
)

// Rule has learned whether the clients of a model come back. It is for one goroutine at a time.
type Rule struct {
	instances int
	enough    float64 // the ratio above which clients are waited for
	ratio     float64 // how many rows came within a window, for each that was answered; 0..1
	usual     times

	// The window is the time after an answer in which its clients count as coming back.

	end      time.Duration // of the window; 0: none is open
	answered int           // rows that were answered for this window
	came     int           // rows that came in it
	limit    time.Duration // end of the wait of the batch that is ready; 0: it has not begun
}

// New returns the rule of a model with some instances. It knows nothing of the clients yet.
//
// Requests that do not depend on answers come into windows by chance. While all instances run, their
// windows cover a part of the time of instances/20 at most, and so many rows come for each answered one. Clients are
// waited for above the middle between that and 1. With 20 instances or more nobody is waited for.
func New(instances int) Rule {
	chance := min(1, float64(instances)/part)
	return Rule{instances: instances, enough: (1 + chance) / 2}
}

// Answer tells that rows were answered after a run.
func (r *Rule) Answer(rows int, now, run time.Duration) {
	r.settle(now)
	window := r.usual.add(rows, run) / part
	if window < shortest {
		return
	}
	r.answered += rows
	r.end = max(r.end, now+window)
}

// Arrive tells that a request of some rows came.
func (r *Rule) Arrive(rows int, now time.Duration) {
	if r.end == 0 {
		return
	}
	r.settle(now)
	if r.end != 0 {
		r.came += rows
	}
}

// Take tells that an instance took the batch that was ready.
func (r *Rule) Take() { r.limit = 0 }

// Wait returns the instant until which an idle instance leaves the only batch that is ready. The
// batch has some rows and may grow to most. running is the rows in all instances. Not after now: the
// instance takes it now.
//
// The rows that are there and expected make one batch for each instance, and one that waits meanwhile.
// So a batch waits until it has its share. It waits no longer than until the window ends, and for a
// part of the usual time of a run of that share.
func (r *Rule) Wait(rows, running, most int, now time.Duration) time.Duration {
	r.settle(now)
	if r.end == 0 || r.ratio <= r.enough {
		return now
	}
	missing := int(math.Round(r.ratio*float64(r.answered))) - r.came
	if missing <= 0 {
		return now
	}
	batches := r.instances + 1
	share := min((rows+running+missing+batches-1)/batches, most)
	if rows >= share {
		return now
	}
	if r.limit == 0 {
		r.limit = min(r.end, now+r.usual.of(share)/part)
	}
	return r.limit
}

// settle learns from the window if that has ended.
func (r *Rule) settle(now time.Duration) {
	if r.end == 0 || now < r.end {
		return
	}
	answered := float64(r.answered)
	came := min(float64(r.came), answered)
	r.ratio += min(1, answered/memory) * (came/answered - r.ratio)
	r.end, r.answered, r.came = 0, 0, 0
}
