package scheduler

import "time"

// queue holds the waiting requests: by priority level, within a level by arrival, the postponed ones of a level last.
type queue[T any] struct {
	levels  []level[T] // index: level-1
	len     int        // requests
	rows    int        // of all requests
	nearest time.Time  // no request expires before; zero: none expires
}

type level[T any] struct {
	waiting   fifo[*Ticket[T]]
	postponed fifo[*Ticket[T]] // expired, but served all the same
}

func newQueue[T any](levels uint64) *queue[T] {
	return &queue[T]{levels: make([]level[T], levels)}
}

// lists are the parts of a level in the order of service.
func (l *level[T]) lists() [2]*fifo[*Ticket[T]] {
	return [2]*fifo[*Ticket[T]]{&l.waiting, &l.postponed}
}

// count is the number of requests of a level.
func (q *queue[T]) count(lvl uint64) int {
	l := &q.levels[lvl-1]
	return l.waiting.len() + l.postponed.len()
}

func (q *queue[T]) push(t *Ticket[T]) {
	q.levels[t.level-1].waiting.push(t)
	q.len++
	q.rows += t.item.Rows
	q.notice(t)
}

// notice takes the expiry of t into account.
func (q *queue[T]) notice(t *Ticket[T]) {
	if !t.expires.IsZero() && (q.nearest.IsZero() || t.expires.Before(q.nearest)) {
		q.nearest = t.expires
	}
}

// scan calls f for each request in the order of service until f returns false.
func (q *queue[T]) scan(f func(*Ticket[T]) bool) {
	for i := range q.levels {
		for _, list := range q.levels[i].lists() {
			for _, t := range list.all() {
				if !f(t) {
					return
				}
			}
		}
	}
}

// take removes the first n requests in the order of service and gives each to f.
func (q *queue[T]) take(n int, f func(*Ticket[T])) {
	q.len -= n
	for i := range q.levels {
		for _, list := range q.levels[i].lists() {
			k := min(n, list.len())
			for _, t := range list.all()[:k] {
				q.rows -= t.item.Rows
				f(t)
			}
			list.discard(k)
			n -= k
		}
	}
}

// remove takes t out wherever it waits.
func (q *queue[T]) remove(t *Ticket[T]) {
	for _, list := range q.levels[t.level-1].lists() {
		before := list.len()
		list.keep(func(x *Ticket[T]) bool { return x != t })
		if list.len() < before {
			q.len--
			q.rows -= t.item.Rows
		}
	}
}

// expire deals with the requests whose time is over: those of a postponing level go to its end, the others are returned.
func (q *queue[T]) expire(now time.Time) (rejected []*Ticket[T]) {
	if q.nearest.IsZero() || now.Before(q.nearest) {
		return nil
	}
	q.nearest = time.Time{}
	for i := range q.levels {
		l := &q.levels[i]
		l.waiting.keep(func(t *Ticket[T]) bool {
			switch {
			case t.expires.IsZero() || now.Before(t.expires):
				q.notice(t)
				return true
			case t.postpone:
				l.postponed.push(t)
			default:
				rejected = append(rejected, t)
				q.len--
				q.rows -= t.item.Rows
			}
			return false
		})
	}
	return rejected
}
