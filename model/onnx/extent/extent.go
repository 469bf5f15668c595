// Package extent says what ONNX Runtime makes of a model file before it runs it. A file of two kilobytes can unfold into millions of
// nodes, because functions call functions, or into gigabytes, because tensors are stored sparsely. ONNX Runtime cannot be interrupted
// meanwhile, so the engine looks first. The package reads the structure of the file and jumps over the weights. It does not say
// whether the model is sound: ONNX Runtime does.
package extent

import (
	"errors"
	"fmt"
	"math/bits"
	"os"

	"tuner/model/onnx"
)

// What a model may unfold into.
const (
	// MaxNodes bounds the nodes that functions add to a model, once each call is replaced by what it calls. ONNX Runtime 1.31 takes
	// half a millisecond for each, two minutes for this number. The largest language models have some 100,000 nodes.
	MaxNodes = 1 << 18
	// MaxBytes bounds the tensors inside of the file, once functions are unfolded and sparse tensors are dense. A file without
	// either has 2 GiB at most, because it is a protobuf message.
	MaxBytes = 4 << 30
)

// Check refuses a model file that unfolds into more. The error is a *onnx.FileError, or the operating system's. What is no ONNX file
// is not refused.
func Check(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read the model: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("cannot read the model: %w", err)
	}
	m := model{scanner: newScanner(file), functions: map[function]*body{}}
	graph, whole, err := m.measure(info.Size())
	var problem string
	switch {
	case errors.Is(err, errDamaged):
		return nil
	case errors.Is(err, errCircle), errors.Is(err, errName):
		problem = err.Error()
	case err != nil:
		return fmt.Errorf("cannot read the model: %w", err)
	case whole.nodes-graph.nodes > MaxNodes:
		problem = fmt.Sprintf("its functions unfold into %s nodes; at most %d are loaded, for which ONNX Runtime takes minutes", number(whole.nodes-graph.nodes), MaxNodes)
	case whole.bytes > MaxBytes:
		problem = fmt.Sprintf("its tensors unfold into %s bytes; at most %d are loaded", number(whole.bytes), uint64(MaxBytes))
	default:
		return nil
	}
	return &onnx.FileError{Path: path, Problem: problem, Remedy: "export the model without nested functions and sparse tensors"}
}

// number writes a sum, which may have reached the largest one.
func number(n uint64) string {
	if n > most/2 {
		return fmt.Sprintf("more than %d", uint64(most/2))
	}
	return fmt.Sprint(n)
}

const most = 1<<64 - 1

// size is what a part of a model amounts to. Its sums stop at the largest number.
type size struct{ nodes, bytes uint64 }

// plus adds another size, a number of times.
func (s size) plus(other size, times uint64) size {
	return size{sum(s.nodes, product(other.nodes, times)), sum(s.bytes, product(other.bytes, times))}
}

func sum(a, b uint64) uint64 {
	total, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return most
	}
	return total
}

func product(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return most
	}
	return low
}

// function is what a node calls: an operator, or a function of the model.
type function struct{ domain, name, overload string }

// body is a graph or a function, with the graphs inside of it.
type body struct {
	own    size
	calls  map[*body]uint64 // how often each function is called
	whole  *size            // once it is known
	isBusy bool             // it is being added up
}

var errCircle = errors.New("its functions call each other in a circle")

// unfold adds up a body and what it calls.
func (b *body) unfold() (size, error) {
	if b.whole != nil {
		return *b.whole, nil
	}
	if b.isBusy {
		return size{}, errCircle
	}
	b.isBusy = true
	total := b.own
	for callee, times := range b.calls {
		s, err := callee.unfold()
		if err != nil {
			return size{}, err
		}
		total = total.plus(s, times)
	}
	b.whole = &total
	return total, nil
}
