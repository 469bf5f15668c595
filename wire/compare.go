package wire

import (
	"bytes"
	"fmt"
	"slices"

	"tuner/engine/api"
)

// compare returns a *MismatchError where an expected tensor is missing or differs in one byte.
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

// difference finds the first element that differs; tensors that have not the same form differ as a whole.
func difference(want, got api.Tensor) error {
	wanted, errWant := elements(want)
	found, errGot := elements(got)
	if errWant != nil || errGot != nil || want.Datatype != got.Datatype || len(wanted) != len(found) {
		return &MismatchError{want.Name, -1, describe(want), describe(got)}
	}
	for i := range wanted {
		if !bytes.Equal(wanted[i], found[i]) {
			return &MismatchError{want.Name, i, text(want.Datatype, wanted[i]), text(got.Datatype, found[i])}
		}
	}
	return &MismatchError{want.Name, -1, describe(want), describe(got)} // the same elements in bytes that differ: not possible
}

func describe(t api.Tensor) string {
	return fmt.Sprintf("%s %v of %d bytes", t.Datatype, t.Shape, len(t.Data))
}
