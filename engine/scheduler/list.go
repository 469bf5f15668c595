package scheduler

import "iter"

// list holds elements in order. Its links are in the elements themselves, so that each of them is taken out without a search, and
// nothing is allocated.
type list[E any] struct {
	first, last *place[E]
	len         int
}

// place is where an element stands: in one list at most.
type place[E any] struct {
	of         E
	in         *list[E] // nil: in none
	prev, next *place[E]
}

func (l *list[E]) push(p *place[E]) {
	p.in, p.prev = l, l.last
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.len++
}

// pop takes out the first element. There is one.
func (l *list[E]) pop() E {
	p := l.first
	p.leave()
	return p.of
}

// leave takes the element out of the list that it is in, if it is in one.
func (p *place[E]) leave() {
	l := p.in
	if l == nil {
		return
	}
	if p.prev == nil {
		l.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.in, p.prev, p.next = nil, nil, nil
	l.len--
}

// all lists the elements in order. The list must not change meanwhile.
func (l *list[E]) all() iter.Seq[E] {
	return func(yield func(E) bool) {
		for p := l.first; p != nil; p = p.next {
			if !yield(p.of) {
				return
			}
		}
	}
}
