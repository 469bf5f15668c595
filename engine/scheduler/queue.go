package scheduler

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"tuner/engine/linked"
)

// queue holds the waiting requests by priority level. Within a level they are in order of arrival,
// the postponed ones last. The cost of an operation on one request is constant or logarithmic in
// the numbers of requests and levels.
type queue[T any] struct {
	levels    []level[T] // index: level-1
	occupied  levelSet   // levels that hold requests
	deadlines deadlines[T]
	len       int    // requests
	rows      int    // rows of all requests
	arrivals  uint64 // so far
	changes   int    // changes of the order, except arrivals at its end
	steps     int    // elements read so far; tests compare it with the size of the queue
	expired   []*Ticket[T]
}

type level[T any] struct {
	waiting   linked.List[*Ticket[T]]
	postponed linked.List[*Ticket[T]] // expired, but still served
}

func newQueue[T any](levels uint64) *queue[T] {
	q := &queue[T]{levels: make([]level[T], levels)}
	q.occupied = newLevelSet(len(q.levels), &q.steps)
	q.deadlines.steps = &q.steps
	return q
}

// count returns the number of requests of a level.
func (q *queue[T]) count(lvl uint64) int {
	l := &q.levels[lvl-1]
	return l.waiting.Len() + l.postponed.Len()
}

func (q *queue[T]) push(t *Ticket[T]) {
	if q.count(t.level) == 0 {
		q.occupied.add(int(t.level - 1))
	}
	q.levels[t.level-1].waiting.Push(&t.place)
	q.len++
	q.rows += t.item.Rows
	q.arrivals++
	t.arrival = q.arrivals
	if !t.expires.IsZero() {
		heap.Push(&q.deadlines, t)
	}
	if q.next(t) != nil {
		q.changes++
	}
}

// remove removes t from the list in which it waits.
func (q *queue[T]) remove(t *Ticket[T]) {
	q.steps++
	q.changes++
	t.place.Leave()
	if t.deadline > 0 {
		heap.Remove(&q.deadlines, t.deadline-1)
	}
	q.len--
	q.rows -= t.item.Rows
	if q.count(t.level) == 0 {
		q.occupied.remove(int(t.level - 1))
	}
}

// nearest returns when the first request expires. Zero: none expires.
func (q *queue[T]) nearest() time.Time {
	if q.deadlines.Len() == 0 {
		return time.Time{}
	}
	return q.deadlines.tickets[0].expires
}

// next returns the request that is served after t, or nil. If t is nil, it returns the first one.
func (q *queue[T]) next(t *Ticket[T]) *Ticket[T] {
	q.steps++
	behind := 0
	if t != nil {
		if t.place.Next() != nil {
			return t.place.Next().Of
		}
		l := &q.levels[t.level-1]
		if t.place.In() == &l.waiting && l.postponed.Len() > 0 {
			return l.postponed.First()
		}
		behind = int(t.level)
	}
	i := q.occupied.next(behind)
	switch {
	case i < 0:
		return nil
	case q.levels[i].waiting.Len() > 0:
		return q.levels[i].waiting.First()
	default:
		return q.levels[i].postponed.First()
	}
}

// takeFirst removes the first n requests in the order of service and passes each to f.
func (q *queue[T]) takeFirst(n int, f func(*Ticket[T])) {
	for range n {
		t := q.next(nil)
		q.remove(t)
		f(t)
	}
}

// expire handles the requests whose timeout is over, in order of arrival. Those of a postponing
// level move to its end. The others are removed and passed to reject.
func (q *queue[T]) expire(now time.Time, reject func(*Ticket[T])) {
	for q.deadlines.Len() > 0 && !now.Before(q.deadlines.tickets[0].expires) {
		q.expired = append(q.expired, heap.Pop(&q.deadlines).(*Ticket[T]))
	}
	if len(q.expired) == 0 {
		return
	}
	slices.SortFunc(q.expired, func(a, b *Ticket[T]) int { return cmp.Compare(a.arrival, b.arrival) })
	for _, t := range q.expired {
		if !t.postpone {
			q.remove(t)
			reject(t)
			continue
		}
		q.steps++
		q.changes++
		t.place.Leave()
		q.levels[t.level-1].postponed.Push(&t.place)
	}
	clear(q.expired)
	q.expired = q.expired[:0]
}

// deadlines is a heap of the requests that expire, the nearest first.
type deadlines[T any] struct {
	tickets []*Ticket[T]
	steps   *int // counts comparisons
}

// Len implements heap.Interface.
func (d *deadlines[T]) Len() int { return len(d.tickets) }

// Less implements heap.Interface.
func (d *deadlines[T]) Less(i, k int) bool {
	*d.steps++
	return d.tickets[i].expires.Before(d.tickets[k].expires)
}

// Swap implements heap.Interface.
func (d *deadlines[T]) Swap(i, k int) {
	d.tickets[i], d.tickets[k] = d.tickets[k], d.tickets[i]
	d.tickets[i].deadline, d.tickets[k].deadline = i+1, k+1
}

// Push implements heap.Interface.
func (d *deadlines[T]) Push(t any) {
	d.tickets = append(d.tickets, t.(*Ticket[T]))
	d.tickets[len(d.tickets)-1].deadline = len(d.tickets)
}

// Pop implements heap.Interface.
func (d *deadlines[T]) Pop() any {
	last := len(d.tickets) - 1
	t := d.tickets[last]
	d.tickets[last] = nil
	d.tickets, t.deadline = d.tickets[:last], 0
	return t
}
