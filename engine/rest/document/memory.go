package document

// Memory holds the shapes or the data of a request's tensors. It consists of pieces, and moves none: a
// piece that is copied to a larger one stays too, as long as a tensor points into it.
type Memory[T any] struct {
	piece   []T // the newest
	earlier int // elements for which the pieces before have memory
}

// Room returns an empty slice with memory for n more elements.
func (m *Memory[T]) Room(n int) []T {
	used := len(m.piece)
	if cap(m.piece)-used < n {
		m.earlier += cap(m.piece)
		m.piece, used = make([]T, 0, n), 0
	}
	return m.piece[used : used : used+n]
}

// Keep takes what was appended to the latest Room, and no more than it had room for.
func (m *Memory[T]) Keep(appended []T) []T {
	m.piece = m.piece[:len(m.piece)+len(appended)]
	return appended[:len(appended):len(appended)]
}

// Size returns the number of elements for which there is memory.
func (m *Memory[T]) Size() int { return m.earlier + cap(m.piece) }

// Clear drops the content. The next request finds as much memory in one piece, unless that is more than most
// elements.
func (m *Memory[T]) Clear(most int) {
	switch size := m.Size(); {
	case size > most:
		m.piece = nil
	case m.earlier > 0:
		m.piece = make([]T, 0, size)
	}
	m.piece, m.earlier = m.piece[:0], 0
}
