package ort

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// add_sub has one Add and one Sub.
func TestAssignment(t *testing.T) {
	t.Parallel()
	s := testSession(t, "add_sub", SessionOptions{RecordAssignment: true, Entries: map[string]string{"session.intra_op.allow_spinning": "0"}})
	got, err := s.Assignment()
	if diff := cmp.Diff([]Assigned{{"cpu", 2, map[string]int{"Add": 1, "Sub": 1}}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Assignment(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: error %v", err)
	}
}

// Without RecordAssignment there is an error, not a guess.
func TestAssignmentWithoutRecord(t *testing.T) {
	t.Parallel()
	got, err := testSession(t, "add_sub", SessionOptions{}).Assignment()
	if err == nil || !strings.Contains(err.Error(), recordAssignment) {
		t.Errorf("got %v, error %v; want one that names the session entry", got, err)
	}
}
