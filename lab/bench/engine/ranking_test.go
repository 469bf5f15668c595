package main

import (
	"slices"
	"strings"
	"testing"

	"tuner/model/modelconfig"
)

func TestRankingSettingsAreTwentyConfigurations(t *testing.T) {
	t.Parallel()
	for _, cores := range []int{2, 8} {
		settings := rankingSettings(cores)
		if len(settings) != 20 {
			t.Errorf("%d settings for %d cores", len(settings), cores)
		}
		for i, s := range settings {
			if slices.Contains(settings[:i], s) {
				t.Errorf("%d cores: %v is there twice", cores, s)
			}
			if _, err := modelconfig.Parse("config.pbtxt", []byte(s.config())); err != nil {
				t.Errorf("%v: %v", s, err)
			}
		}
	}
}

func TestWriteRanking(t *testing.T) {
	t.Parallel()
	var standings []standing
	for i, tuner := range []float64{100, 300, 200} {
		s := standing{setting: setting{Instances: i + 1, Threads: 1, MaxBatch: 4}, concurrency: rankingLoads()[0]}
		// The best of tuner, the second, gives 291 of Triton's best, 300.
		s.rounds = roundsOf([]float64{tuner}, []float64{[]float64{100, 291, 300}[i]})
		standings = append(standings, s)
		s.concurrency = rankingLoads()[1]
		s.rounds = roundsOf([]float64{10 * tuner}, []float64{tuner})
		standings = append(standings, s)
	}
	var text strings.Builder
	if err := writeRanking(&text, standings); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 2 × 1, batch 4 | 4 | 300.0 | 1 | 291.0 | 2 | 1.031 |",
		"| concurrency 4 | 3 | **0.500** | 2 × 1, batch 4 | **0.970** |", // ranks 3 1 2 and 3 2 1: 1 − 6 · 2 / (3 · 8)
		"| concurrency 32 | 3 | **1.000** | 2 × 1, batch 4 | **1.000** |",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
}
