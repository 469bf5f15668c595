package scheduler

import "iter"

// list holds elements in order. Its links are in the elements, so that an element is removed
// without a search, and nothing is allocated.
type list[E any] struct {
	first, last *listPlace[E]
	len         int
}

// listPlace is the position of an element, in at most one list.
type listPlace[E any] struct {
	of         E
	in         *list[E] // nil: in none
	prev, next *listPlace[E]
}

func (l *list[E]) push(p *listPlace[E]) {
	p.in, p.prev = l, l.last
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.len++
}

// pop removes and returns the first element. The list must not be empty.
func (l *list[E]) pop() E {
	p := l.first
	p.leave()
	return p.of
}

// leave removes the element from its list, if it is in one.
func (p *listPlace[E]) leave() {
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
