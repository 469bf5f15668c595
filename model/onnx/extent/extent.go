// Package extent computes how large a model file becomes when ONNX Runtime loads it. Functions that
// call functions can unfold two kilobytes into millions of nodes. Sparse tensors, and nodes that
// depend on no input, can unfold them into gigabytes. ONNX Runtime cannot be interrupted while it
// loads, so the engine checks first.
//
// The package reads the structure of the file and skips the weights. It does not check whether the
// model is valid; ONNX Runtime does.
package extent

import (
	"errors"
	"fmt"
	"math/bits"
	"os"

	"tuner/model/onnx"
)

// Limits on an unfolded model.
const (
	// MaxNodes limits the nodes of a model after each function call is replaced by the function's
	// nodes. ONNX Runtime 1.31 takes half a millisecond for each, so two minutes for this number.
	// The largest language models have about 100,000 nodes.
	MaxNodes = 1 << 18
	// MaxBytes limits the tensors inside the file, after functions are unfolded and sparse tensors
	// are dense. A file without either has at most 2 GiB, because it is a protobuf message.
	MaxBytes = 4 << 30
)

// Check refuses a model file beyond these limits. The error is a *onnx.FileError, or the operating
// system's. It does not refuse files of other formats, which have no constants for it.
func Check(path string) (Constants, error) {
	file, err := os.Open(path)
	if err != nil {
		return Constants{}, fmt.Errorf("cannot read the model: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Constants{}, fmt.Errorf("cannot read the model: %w", err)
	}
	m := model{scanner: newScanner(file), functions: map[function]*body{}}
	graph, whole, err := m.measure(info.Size())
	var found Constants
	if err == nil && whole.nodes-graph.nodes <= MaxNodes && whole.bytes <= MaxBytes {
		found, err = m.constants(info.Size())
	}
	var problem string
	switch {
	case errors.Is(err, errDamaged):
		return Constants{}, nil
	case errors.Is(err, errCircle), errors.Is(err, errName):
		problem = err.Error()
	case err != nil:
		return Constants{}, fmt.Errorf("cannot read the model: %w", err)
	case whole.nodes-graph.nodes > MaxNodes:
		problem = fmt.Sprintf("its functions unfold into %s nodes, and %d are the most that are loaded, since ONNX Runtime takes minutes for them", number(whole.nodes-graph.nodes), MaxNodes)
	case whole.bytes > MaxBytes:
		problem = fmt.Sprintf("its tensors unfold into %s bytes; at most %d are loaded", number(whole.bytes), uint64(MaxBytes))
	default:
		return found, nil
	}
	return Constants{}, &onnx.FileError{Path: path, Problem: problem, Remedy: "export the model without nested functions and sparse tensors"}
}

// number prints a sum, which may have saturated.
func number(n uint64) string {
	if n > most/2 {
		return fmt.Sprintf("more than %d", uint64(most/2))
	}
	return fmt.Sprint(n)
}

const most = 1<<64 - 1

// size is the size of a part of a model. Sums saturate at the largest number.
type size struct{ nodes, bytes uint64 }

// plus adds a multiple of another size.
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

// function is the callee of a node: an operator, or a function of the model.
type function struct{ domain, name, overload string }

// body is a graph or a function, including the graphs inside it.
type body struct {
	own        size
	calls      map[*body]uint64 // number of calls of each function
	whole      *size            // unfolded size, once it is known
	isBusy     bool             // its unfolded size is being computed
	begin, end int64            // of a function in the file
	isTwice    bool             // the file has several functions with its name
}

var errCircle = errors.New("its functions call each other without an end")

// unfold returns the size of a body including the functions that it calls.
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
