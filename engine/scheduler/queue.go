package scheduler

import (
	"slices"
	"time"
)

// queue holds the waiting requests: by priority level, within a level by arrival, the postponed ones of a level last.
type queue[T any] struct {
	levels  []level[T] // index: level-1
	len     int
	nearest time.Time // no request expires before; zero: none expires
}

type level[T any] struct {
	waiting   []*Ticket[T]
	postponed []*Ticket[T] // expired, but served all the same
}

func newQueue[T any](levels uint64) *queue[T] {
	return &queue[T]{levels: make([]level[T], levels)}
}

// count is the number of requests of a level.
func (q *queue[T]) count(lvl uint64) int {
	l := &q.levels[lvl-1]
	return len(l.waiting) + len(l.postponed)
}

func (q *queue[T]) push(t *Ticket[T]) {
	l := &q.levels[t.level-1]
	l.waiting = append(l.waiting, t)
	q.len++
	if !t.expires.IsZero() && (q.nearest.IsZero() || t.expires.Before(q.nearest)) {
		q.nearest = t.expires
	}
}

// scan calls f for each request in the order of service until f returns false.
func (q *queue[T]) scan(f func(*Ticket[T]) bool) {
	for i := range q.levels {
		for _, list := range [2][]*Ticket[T]{q.levels[i].waiting, q.levels[i].postponed} {
			for _, t := range list {
				if !f(t) {
					return
				}
			}
		}
	}
}

// take removes the first n requests in the order of service and gives each to f.
func (q *queue[T]) take(n int, f func(*Ticket[T])) {
	for i := range q.levels {
		for _, list := range [2]*[]*Ticket[T]{&q.levels[i].waiting, &q.levels[i].postponed} {
			k := min(n, len(*list))
			for _, t := range (*list)[:k] {
				f(t)
			}
			clear((*list)[:k]) // the array lives on, what it pointed to should not
			*list = (*list)[k:]
			n -= k
			q.len -= k
		}
	}
}

// remove takes t out wherever it waits, and reports whether it was there.
func (q *queue[T]) remove(t *Ticket[T]) bool {
	l := &q.levels[t.level-1]
	for _, list := range [2]*[]*Ticket[T]{&l.waiting, &l.postponed} {
		if i := slices.Index(*list, t); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
			q.len--
			return true
		}
	}
	return false
}

// expire deals with the requests whose time is over: those of a postponing level go to its end, the others are returned.
func (q *queue[T]) expire(now time.Time) (rejected []*Ticket[T]) {
	if q.nearest.IsZero() || now.Before(q.nearest) {
		return nil
	}
	q.nearest = time.Time{}
	for i := range q.levels {
		l := &q.levels[i]
		keep := l.waiting[:0]
		for _, t := range l.waiting {
			switch {
			case t.expires.IsZero() || now.Before(t.expires):
				keep = append(keep, t)
				if !t.expires.IsZero() && (q.nearest.IsZero() || t.expires.Before(q.nearest)) {
					q.nearest = t.expires
				}
			case t.postpone:
				l.postponed = append(l.postponed, t)
			default:
				rejected = append(rejected, t)
				q.len--
			}
		}
		clear(l.waiting[len(keep):])
		l.waiting = keep
	}
	return rejected
}
