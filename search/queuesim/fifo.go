package queuesim

// fifo is a queue that reuses its array.
type fifo[E any] struct {
	items []E
	head  int // items before it are removed
}

func (f *fifo[E]) len() int { return len(f.items) - f.head }

// front returns the oldest item. It is valid until the next change.
func (f *fifo[E]) front() *E { return &f.items[f.head] }

func (f *fifo[E]) push(e E) {
	if len(f.items) == cap(f.items) && f.head > len(f.items)/2 {
		f.items = f.items[:copy(f.items, f.items[f.head:])]
		f.head = 0
	}
	f.items = append(f.items, e)
}

func (f *fifo[E]) pop() E {
	e := f.items[f.head]
	if f.head++; f.head == len(f.items) {
		f.reset()
	}
	return e
}

func (f *fifo[E]) reset() { f.items, f.head = f.items[:0], 0 }
