package campaign_test

import (
	"slices"
	"testing"

	"tuner/profile/campaign"
)

// The recorded campaign of two models has the windows of both between the same edges, and the traffic of
// both at each scale.
func TestReadSeveralModels(t *testing.T) {
	t.Parallel()
	c, err := campaign.Read("../../testdata/journals/several")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"encoder", "ranker"}
	if !slices.Equal(c.Profile.ModelNames(), want) || len(c.Header.Parts) != 2 || len(c.Facts.Parts) != 2 || len(c.Events) != 16 {
		t.Fatalf("%v, %d parts, facts of %d, %d events", c.Profile.ModelNames(), len(c.Header.Parts), len(c.Facts.Parts), len(c.Events))
	}
	for i, e := range c.Events {
		m := e.Measurement
		if !slices.Equal(m.Models(), want) || m.Scale != e.Trial.Load.Scale || e.Trial.Load.Of("ranker").RequestRate != 50*m.Scale {
			t.Errorf("trial %d: models %v, scale %g at %v", i+1, m.Models(), m.Scale, e.Trial.Load)
		}
		encoder, ranker := m.Of("encoder").Windows, m.Of("ranker").Windows
		for k := range encoder {
			if a, b := encoder[k], ranker[k]; a.Start != b.Start || a.Duration != b.Duration {
				t.Errorf("trial %d, window %d: [%v, +%v] and [%v, +%v]", i+1, k+1, a.Start, a.Duration, b.Start, b.Duration)
			}
		}
	}
}
