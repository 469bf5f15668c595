// Package linked has lists whose links are in the elements. So an element is removed without a search,
// and nothing is allocated. The queues of requests are made of them.
package linked

import "iter"

// List holds elements in order. The zero value is empty.
type List[E any] struct {
	first, last *Place[E]
	len         int
}

// Place is the position of an element, in at most one list.
type Place[E any] struct {
	Of         E        // the element
	in         *List[E] // nil: in none
	prev, next *Place[E]
}

// Len returns the number of elements.
func (l *List[E]) Len() int { return l.len }

// First returns the first element. The list must not be empty.
func (l *List[E]) First() E { return l.first.Of }

// In returns the list of a place; nil if it is in none.
func (p *Place[E]) In() *List[E] { return p.in }

// Next returns the place after this one; nil for the last one.
func (p *Place[E]) Next() *Place[E] { return p.next }

// Push adds an element at the end. It must be in no list.
func (l *List[E]) Push(p *Place[E]) {
	p.in, p.prev = l, l.last
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.len++
}

// Pop removes and returns the first element. The list must not be empty.
func (l *List[E]) Pop() E {
	p := l.first
	p.Leave()
	return p.Of
}

// Leave removes the element from its list, if it is in one.
func (p *Place[E]) Leave() {
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

// All lists the elements in order. The list must not change meanwhile.
func (l *List[E]) All() iter.Seq[E] {
	return func(yield func(E) bool) {
		for p := l.first; p != nil; p = p.next {
			if !yield(p.Of) {
				return
			}
		}
	}
}
