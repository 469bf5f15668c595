package search_test

import (
	"slices"
	"testing"

	"tuner/search"
)

func TestDividedCores(t *testing.T) {
	t.Parallel()
	for _, cores := range [][]int{{1}, {1, 3}, {16, 2, 46}} {
		v := search.DividedCores(cores)
		if again, ok := v.Divided(); !ok || !slices.Equal(again, cores) {
			t.Errorf("%v is written as %q and read as %v", cores, v, again)
		}
	}
	if v := search.DividedCores([]int{1, 3}); v != "cores:1,3" {
		t.Errorf("1 and 3 cores are written as %q", v)
	}
	for _, v := range []search.Value{"", "shared", "cores:", "cores:0,2", "cores:a", "1,3"} {
		if cores, ok := v.Divided(); ok {
			t.Errorf("%q is read as %v", v, cores)
		}
	}
}
