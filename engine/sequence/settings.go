package sequence

import (
	"errors"
	"strconv"
	"time"

	"tuner/engine/scheduler"
)

// Reasons why a request was not executed.
var (
	ErrNoID       = errors.New("the request belongs to no sequence")
	ErrNotStarted = errors.New("the sequence has not been started")
	ErrExpired    = errors.New("the sequence waited longer for a slot than its timeout")
	ErrBroken     = errors.New("an earlier request of the sequence was cancelled")
	ErrClosed     = errors.New("the scheduler is closed")
)

// Settings describe how sequences share the instances.
type Settings struct {
	// true: the oldest strategy, in which requests of any slots form a batch, as a dynamic batcher
	// does. false: direct, in which a slot is a row of the batch.
	Oldest   bool
	Slots    int           // sequences that an instance serves at the same time, at least 1
	MaxBatch int           // largest number of rows in a batch, at least 1
	Idle     time.Duration // a sequence that has a slot ends if it has no request for this long
	// time for which the oldest request may wait for others; 0: none
	Delay time.Duration
	// direct: the share of slots with requests from which on no request waits; 0: none waits
	Utilization      float64
	Preferred        []int // oldest: preferred batch sizes in rows; empty: only MaxBatch
	PreserveOrdering bool  // oldest: answer in the order in which requests joined batches
	// a sequence ends with the request that started it, and a request without an identity starts one
	Iterative bool
	// requests that must wait in slots, and in the backlog, before the first batch; 0: none. Tests use
	// it to know what a batch will hold.
	Hold, HoldBacklog int
	// timer for requests and sequences that wait
	Timer func(call func()) scheduler.Timer
}

// batcher returns the settings of an instance's batcher in the oldest strategy.
func (s Settings) batcher() scheduler.Settings {
	return scheduler.Settings{
		Dynamic: true, MaxBatch: s.MaxBatch, Preferred: s.Preferred, Delay: s.Delay, PreserveOrdering: s.PreserveOrdering, Hold: s.Hold,
	}
}

// ID identifies a sequence, by a number or a text. The zero value is no sequence.
type ID struct {
	Number uint64
	Text   string
}

// String returns the number or the text.
func (id ID) String() string {
	if id.Text != "" {
		return id.Text
	}
	return strconv.FormatUint(id.Number, 10)
}

// Item is the scheduler's view of a request.
type Item[T any] struct {
	Value T
	ID    ID
	Start bool // the first request of the sequence
	End   bool // the last one
	// requests with different shapes never share a batch; "": the model has only one shape
	Shape   string
	Timeout time.Duration // largest time of the sequence in the backlog; 0: no limit
	// hears of the outcome, as in package scheduler; nil: nobody
	Notifier scheduler.Notifier

	Enqueued time.Time // set by the scheduler
}

// Row is a row of a batch.
type Row[T any] struct {
	Item[T]
	Slot int // within the instance
	// direct: no request is ready in this slot, and Item is that of another row. So the rows of all
	// other slots stay at their place.
	Vacant bool
}

// Executor runs batches on one instance of a model. Only one goroutine calls Execute. It blocks until
// the batch is done, and stores the outcome in the items. It must not keep them.
type Executor[T any] interface {
	Execute(rows []Row[T])
}
