package main

import (
	"slices"
	"testing"

	"tuner/capacity/traffic"
)

// A week has waves, a weaker weekend and bursts, and the same seed makes the same week.
func TestWeek(t *testing.T) {
	t.Parallel()
	rates := week(1000, 1)
	if !slices.Equal(rates, week(1000, 1)) || slices.Equal(rates, week(1000, 2)) {
		t.Error("the seed does not decide")
	}
	sum := func(day int) (n float64) {
		for _, r := range rates[day*traffic.PerDay : (day+1)*traffic.PerDay] {
			n += r
		}
		return n
	}
	if len(rates) != 7*traffic.PerDay || sum(6) > 0.95*sum(2) {
		t.Errorf("%d steps, Sunday has %.2f of Wednesday", len(rates), sum(6)/sum(2))
	}
	if ratio := slices.Max(rates) / slices.Min(rates); ratio < 3 {
		t.Errorf("the peak is %.1f times the trough", ratio)
	}
}
