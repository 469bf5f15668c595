package wire

import (
	"bytes"
	"fmt"
	"slices"

	"tuner/engine/api"
)

// compare returns a *MismatchError if an expected tensor is missing or differs in one byte.
func compare(expected, outputs []api.Tensor) error {
	for _, want := range expected {
		i := slices.IndexFunc(outputs, func(t api.Tensor) bool { return t.Name == want.Name })
		if i < 0 {
			return &MismatchError{want.Name, -1, describe(want), "missing"}
		}
		if got := outputs[i]; !bytes.Equal(got.Data, want.Data) {
			return difference(want, got)
		}
	}
	return nil
}

// difference returns the first element that differs. Tensors of different forms differ as a whole.
func difference(want, got api.Tensor) error {
	whole := &MismatchError{want.Name, -1, describe(want), describe(got)}
	if want.Datatype != got.Datatype {
		return whole
	}
	// without cutting into elements, since every wrong answer of a load comes here
	if size, fixed := sizes[want.Datatype]; fixed {
		i := firstDifference(want.Data, got.Data) / size
		if len(want.Data) != len(got.Data) || (i+1)*size > len(want.Data) {
			return whole
		}
		element := func(t api.Tensor) string { return text(t.Datatype, t.Data[i*size:(i+1)*size]) }
		return &MismatchError{want.Name, i, element(want), element(got)}
	}
	wanted, errWant := elements(want)
	found, errGot := elements(got)
	if errWant != nil || errGot != nil || len(wanted) != len(found) {
		return whole
	}
	for i := range wanted {
		if !bytes.Equal(wanted[i], found[i]) {
			return &MismatchError{want.Name, i, text(want.Datatype, wanted[i]), text(got.Datatype, found[i])}
		}
	}
	return whole
}

// firstDifference returns the first index at which two slices differ, or the length of the shorter
// one.
func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func describe(t api.Tensor) string {
	return fmt.Sprintf("%s %v of %d bytes", t.Datatype, t.Shape, len(t.Data))
}
