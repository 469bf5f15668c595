package capacity

import (
	"math"
	"testing"
	"time"

	"tuner/capacity/traffic"
)

// The piece with the most misses wins, and without misses that with the most requests for each replica.
func TestWorstPart(t *testing.T) {
	t.Parallel()
	of := func(list ...Moment) []Moment { return list }
	check := func(all []Moment, n, want int) {
		t.Helper()
		if begin, got := worst(all, n); begin != want || len(got) != min(n, len(all)) {
			t.Errorf("%v: %d moments from %d, want %d from %d", all, len(got), begin, n, want)
		}
	}
	check(of(Moment{9, 1, 0}, Moment{1, 1, 2}, Moment{1, 1, 3}, Moment{9, 1, 0}), 2, 1)
	check(of(Moment{1, 1, 0}, Moment{8, 4, 0}, Moment{6, 2, 0}), 1, 2)
	check(of(Moment{1, 1, 0}, Moment{2, 1, 0}), 5, 0)
	check(of(Moment{3, 1, 0.1}, Moment{1, 1, 0.1}, Moment{1, 1, 0.1}), 1, 0)
}

// The worst piece of a constant fleet is where the traffic peaks: between 9 and 18 o'clock.
func TestWorstPieceIsAtThePeak(t *testing.T) {
	t.Parallel()
	q := question(t, "{0h: 50, 8h: 50, 9h: 400, 18h: 400, 19h: 50, 24h: 50}")
	p, err := WorstPiece(q, box("c7i", 1), Scaling{Scaler: Fixed, Min: 5, Max: 5}, 2*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	ofDay := p.Begin % (24 * time.Hour)
	if len(p.Moments) != 8 || ofDay < 8*time.Hour || ofDay > 19*time.Hour {
		t.Errorf("%d steps from %v", len(p.Moments), ofDay)
	}
	for _, m := range p.Moments {
		if m.Ready != 5 || math.Abs(m.Requests/traffic.Step.Seconds()-400) > 60 {
			t.Errorf("%+v", m)
		}
	}
	if _, err := WorstPiece(q, box("c7i", 1), Scaling{Scaler: clairvoyant, Min: 1, Max: 5}, time.Minute); err == nil {
		t.Error("a clairvoyant has a worst piece")
	}
}
