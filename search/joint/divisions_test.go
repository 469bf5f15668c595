package joint_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/search"
	"tuner/search/joint"
)

// Four cores are divided among two models in three ways, and among three in three.
func TestDivisions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		models, cores int
		want          []search.Value
	}{
		{2, 4, []search.Value{"cores:1,3", "cores:2,2", "cores:3,1"}},
		{3, 4, []search.Value{"cores:1,1,2", "cores:1,2,1", "cores:2,1,1"}},
		{1, 3, []search.Value{"cores:3"}}, {2, 2, []search.Value{"cores:1,1"}}, {3, 2, nil}, {0, 2, nil},
	} {
		if d := cmp.Diff(c.want, joint.Divisions(c.models, c.cores)); d != "" {
			t.Errorf("%d models on %d cores (-want +got):\n%s", c.models, c.cores, d)
		}
	}
}

// Every division gives each model a core at least and all cores away, and none comes twice. There are
// cores−1 over models−1 of them.
func TestDivisionsAreComplete(t *testing.T) {
	t.Parallel()
	for models := 1; models <= 5; models++ {
		for cores := models; cores <= 12; cores++ {
			list := joint.Divisions(models, cores)
			if n := joint.CountDivisions(models, cores, 1<<30); n != len(list) {
				t.Errorf("%d models on %d cores: %d divisions, counted %d", models, cores, len(list), n)
			}
			if sorted := slices.Compact(slices.Sorted(slices.Values(list))); len(sorted) != len(list) {
				t.Errorf("%d models on %d cores: a division comes twice", models, cores)
			}
			for _, v := range list {
				of, ok := v.Divided()
				sum := 0
				for _, n := range of {
					sum += n
				}
				if !ok || len(of) != models || sum != cores {
					t.Errorf("%d models on %d cores: %s", models, cores, v)
				}
			}
		}
	}
	if n := joint.CountDivisions(16, 256, 1000); n != 1000 {
		t.Errorf("16 models on 256 cores have %d divisions, at most 1000", n)
	}
	// 19 over 15 is 3,876, though 19 over 9 is 92,378.
	if n, err := joint.CountDivisions(16, 20, 1<<16), joint.CheckDivisions(16, 20); n != 3876 || err != nil {
		t.Errorf("16 models on 20 cores have %d divisions: %v", n, err)
	}
}
