package parallel

import (
	"fmt"
	"testing"
)

func TestForDoesEachPieceOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 1000} {
		done := make([]int, n)
		For(n, func(i int) { done[i]++ })
		for i, times := range done {
			if times != 1 {
				t.Errorf("of %d, piece %d was done %d times", n, i, times)
			}
		}
	}
}

func TestTryReturnsTheFirstError(t *testing.T) {
	t.Parallel()
	done := make([]bool, 100)
	err := Try(len(done), func(i int) error {
		done[i] = true
		if i%10 == 7 {
			return fmt.Errorf("piece %d", i)
		}
		return nil
	})
	if err == nil || err.Error() != "piece 7" {
		t.Errorf("the error is %v, want that of piece 7", err)
	}
	for i, isDone := range done {
		if !isDone {
			t.Errorf("piece %d was not done", i)
		}
	}
	if err := Try(3, func(int) error { return nil }); err != nil {
		t.Errorf("nothing failed, but %v", err)
	}
}
