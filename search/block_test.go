package search_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
)

// A block keeps the configurations, loads and phase of its trials. Measured alone, a seat takes as
// long as in its turns.
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

// A journal distinguishes blocks by their ordinals. A journal from before blocks existed is read as
// before.
func TestBlockInAJournal(t *testing.T) {
	t.Parallel()
	byKey := cmp.Comparer(func(a, b search.Candidate) bool { return a.Key() == b.Key() })
	action := search.Settings{}.Block([]search.Trial{{Phase: search.PhaseFinal}, {Phase: search.PhaseFinal}}, 4).Numbered(3)
	for _, trial := range append(action.Block, search.Trial{Windows: 1, Window: time.Second, Phase: search.PhaseFinal}) {
		event := search.Event{Trial: trial, Measurement: measure.Measurement{Windows: []measure.Window{{Start: time.Second, Turn: trial.Block > 0}}}, Elapsed: time.Minute}
		data, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		if marked := strings.Contains(string(data), `"block":3`) && strings.Contains(string(data), `"turn":true`); marked != (trial.Block > 0) {
			t.Errorf("block %d: %s", trial.Block, data)
		}
		var read search.Event
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(event.Trial, read.Trial, byKey); diff != "" || read.Measurement.Windows[0].Turn != (trial.Block > 0) || read.Measurement.Windows[0].Start != time.Second {
			t.Errorf("block %d (-want +got):\n%s", trial.Block, diff)
		}
	}
	old := `{"trial":{"candidate":[],"load":{"concurrency":2},"windows":2,"window":2000000000,"fresh":true,"phase":"final"},"measurement":{"windows":[{"start":5}],"launch":4},"elapsed":9}`
	var read search.Event
	if err := json.Unmarshal([]byte(old), &read); err != nil || read.Trial.Block != 0 || read.Measurement.Windows[0].Turn || !read.Trial.Fresh || read.Elapsed != 9 {
		t.Errorf("%+v, %v", read, err)
	}
}
