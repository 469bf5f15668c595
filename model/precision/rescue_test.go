package precision

import "testing"

// 4 of 8 nodes are enough. 2 miss the limit, and 3 is refused. 4 is the answer.
func TestFewestKeptOutlivesARefusal(t *testing.T) {
	t.Parallel()
	fewest, _, err := fewestKept(8, func(n int) (attempt, error) {
		switch {
		case n == 3:
			return attempt{miss: "out of memory"}, nil
		case n < 3:
			return attempt{miss: "too low"}, nil
		}
		return attempt{kept: make([]KeptNode, n)}, nil
	})
	if err != nil || fewest == nil || len(fewest.kept) != 4 {
		t.Fatalf("fewestKept = %v, %v; want 4 nodes", fewest, err)
	}
}
