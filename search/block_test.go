package search_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
)

// Whatever the trials are: a block keeps which configurations they are, at which loads and in which phase; measured alone a seat takes as long as in
// its turns.
func TestBlock(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	byKey := cmp.Comparer(func(a, b search.Candidate) bool { return a.Key() == b.Key() })
	for range 100 {
		var seats []search.Trial
		for range 1 + random.IntN(search.MostSeats) {
			seats = append(seats, search.Trial{Load: measure.Load{Concurrency: 1 + random.IntN(9)}, Windows: 1 + random.IntN(3), Window: time.Second, Phase: search.PhaseFinal})
		}
		rounds := 1 + random.IntN(12)
		action := search.Settings{}.Block(seats, rounds).Numbered(7)
		if len(seats) == 1 {
			want := seats[0]
			want.Windows, want.Window, want.Fresh = 1, time.Duration(rounds)*search.TurnWindow, true
			if diff := cmp.Diff(search.Action{Trial: want}, action, byKey); diff != "" {
				t.Fatalf("a single seat (-want +got):\n%s", diff)
			}
			continue
		}
		want := make([]search.Trial, len(seats))
		for i, s := range seats {
			want[i] = s
			want[i].Windows, want[i].Window, want[i].Fresh, want[i].Block = rounds, search.TurnWindow, true, 7
			alone := action.Block[i].Alone()
			if alone.Block != 0 || !alone.Fresh || alone.Window != time.Duration(rounds)*search.TurnWindow || alone.Windows != 1 || alone.Load != s.Load {
				t.Fatalf("alone: %+v", alone)
			}
		}
		if diff := cmp.Diff(search.Action{Trial: want[0], Block: want}, action, byKey); diff != "" {
			t.Fatalf("%d seats (-want +got):\n%s", len(seats), diff)
		}
		if diff := cmp.Diff(want, action.Trials(), byKey); diff != "" {
			t.Fatal(diff)
		}
	}
	if n := len(search.Action{Stop: true}.Trials()); n != 0 {
		t.Errorf("%d trials of an end", n)
	}
	if n := len(search.Action{}.Trials()); n != 1 {
		t.Errorf("%d trials of a trial", n)
	}
}
