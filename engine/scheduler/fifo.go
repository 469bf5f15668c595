package scheduler

import "slices"

// fifo is a queue that uses its array again: once it has grown to what a load needs, it allocates nothing.
type fifo[E any] struct {
	items []E
	head  int // items before it are gone
}

func (f *fifo[E]) len() int { return len(f.items) - f.head }

// all returns what is queued, oldest first; it is valid until the next change.
func (f *fifo[E]) all() []E { return f.items[f.head:] }

func (f *fifo[E]) push(e E) {
	if len(f.items) == cap(f.items) && f.head > len(f.items)/2 {
		f.truncate(copy(f.items, f.all()))
		f.head = 0
	}
	f.items = append(f.items, e)
}

func (f *fifo[E]) pop() E {
	e := f.items[f.head]
	f.discard(1)
	return e
}

// discard removes the n oldest.
func (f *fifo[E]) discard(n int) {
	clear(f.items[f.head : f.head+n]) // the array lives on, what it pointed to should not
	if f.head += n; f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	}
}

// keep removes those for which wanted is false. The order stays.
func (f *fifo[E]) keep(wanted func(E) bool) {
	rest := slices.DeleteFunc(f.all(), func(e E) bool { return !wanted(e) })
	f.truncate(f.head + len(rest))
}

// truncate ends the array at n.
func (f *fifo[E]) truncate(n int) {
	clear(f.items[n:])
	f.items = f.items[:n]
}
