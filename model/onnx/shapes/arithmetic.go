package shapes

import "slices"

// pairwise computes element by element. A list with one element is combined with each element of
// the other.
func (n node) pairwise() ([]number, bool) {
	a, ok := n.numbers(0)
	b, okB := n.numbers(1)
	if !ok || !okB || len(n.GetInput()) != 2 {
		return nil, false
	}
	return zip(operation(n.operator()), a, b)
}

func operation(operator string) func(a, b number) number {
	switch operator {
	case "Add":
		return plus
	case "Sub":
		return minus
	case "Mul":
		return times
	case "Div":
		return over
	default:
		return equal
	}
}

// zip applies f to the elements of two lists of equal length. A list may also have a single
// element.
func zip(f func(a, b number) number, a, b []number) ([]number, bool) {
	switch {
	case len(a) == 1:
		a = slices.Repeat(a, len(b))
	case len(b) == 1:
		b = slices.Repeat(b, len(a))
	}
	if len(a) != len(b) {
		return nil, false
	}
	numbers := make([]number, len(a))
	for i := range a {
		numbers[i] = f(a[i], b[i])
	}
	return numbers, true
}

func plus(a, b number) number {
	switch {
	case a == whole(0):
		return b
	case b == whole(0):
		return a
	case a.known && b.known && small(a.value) && small(b.value):
		return whole(a.value + b.value)
	default:
		return number{}
	}
}

func minus(a, b number) number {
	switch {
	case b == whole(0):
		return a
	case a.known && b.known && small(a.value) && small(b.value):
		return whole(a.value - b.value)
	case a.symbol != "" && a == b:
		return whole(0)
	default:
		return number{}
	}
}

func times(a, b number) number {
	switch {
	case a == whole(1):
		return b
	case b == whole(1):
		return a
	case a.known && b.known && small(a.value) && small(b.value):
		return whole(a.value * b.value)
	default:
		return number{}
	}
}

// over is integer division. ONNX Runtime truncates towards 0 like Go.
func over(a, b number) number {
	switch {
	case b == whole(1):
		return a
	case a.known && b.known && b.value != 0 && small(a.value) && small(b.value):
		return whole(a.value / b.value)
	default:
		return number{}
	}
}

// equal compares two numbers. A size is never negative, which exporters test before an Expand.
func equal(a, b number) number {
	truth := func(v bool) number {
		if v {
			return whole(1)
		}
		return whole(0)
	}
	switch {
	case a.known && b.known:
		return truth(a.value == b.value)
	case a.symbol != "" && a == b:
		return truth(true)
	case a.symbol != "" && b.known && b.value < 0, b.symbol != "" && a.known && a.value < 0:
		return truth(false)
	default:
		return number{}
	}
}

// choose implements Where.
func (n node) choose() ([]number, bool) {
	condition, ok := n.numbers(0)
	yes, okYes := n.numbers(1)
	no, okNo := n.numbers(2)
	if !ok || !okYes || !okNo {
		return nil, false
	}
	count := max(len(condition), len(yes), len(no))
	sides := [][]number{condition, yes, no}
	for i, side := range sides {
		if len(side) == 1 {
			sides[i] = slices.Repeat(side, count)
		}
		if len(sides[i]) != count {
			return nil, false
		}
	}
	chosen := make([]number, count)
	for i, c := range sides[0] {
		switch {
		case c == whole(1):
			chosen[i] = sides[1][i]
		case c == whole(0):
			chosen[i] = sides[2][i]
		case sides[1][i] == sides[2][i]:
			chosen[i] = sides[1][i]
		}
	}
	return chosen, true
}
