package search_test

import (
	"encoding/json"
	"testing"

	"tuner/search"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	check := func(c search.Candidate, key, pool string) {
		if c.Key() != key || c.PoolKey() != pool {
			t.Errorf("keys are %q and %q, want %q and %q", c.Key(), c.PoolKey(), key, pool)
		}
	}
	batch := search.Setting{Knob: "max_batch_size", Value: "8"}
	check(search.Candidate{}, "default", "default")
	check(search.NewCandidate(batch), "max_batch_size=8", "default")
	check(search.NewCandidate(search.Setting{Knob: "instance_count", Value: "2"}, batch), "instance_count=2 max_batch_size=8",
		"instance_count=2")
	check(search.NewCandidate(search.Setting{Knob: "response_cache", Value: "true"}), "response_cache=true", "response_cache=true")
}

func TestArtifactKey(t *testing.T) {
	t.Parallel()
	threads, precision := search.Setting{Knob: "intra_op_threads", Value: "2"}, search.Setting{Knob: "precision", Value: "int8"}
	for want, c := range map[string]search.Candidate{"default": search.NewCandidate(threads), "precision=int8": search.NewCandidate(precision, threads)} {
		if got := c.ArtifactKey(); got != want {
			t.Errorf("the artifact of %s is %q, want %q", c, got, want)
		}
	}
}

func TestCandidateIsImmutable(t *testing.T) {
	t.Parallel()
	c := search.NewCandidate(search.Setting{Knob: "a", Value: "1"})
	d := c.With("a", "2").With("b", "3")
	c.Settings()[0].Value = "9"
	if c.Key() != "a=1" || d.Key() != "a=2 b=3" {
		t.Errorf("candidates are %v and %v", c, d)
	}
}

func TestCandidateRoundTrip(t *testing.T) {
	t.Parallel()
	for _, c := range []search.Candidate{{}, search.NewCandidate(search.Setting{Knob: "a", Value: "1"}, search.Setting{Knob: "b", Value: "[2]"})} {
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var got search.Candidate
		if err := json.Unmarshal(data, &got); err != nil || got.Key() != c.Key() || got.IsDefault() != c.IsDefault() {
			t.Errorf("%v came back from %s as %v, %v", c, data, got, err)
		}
	}
	var c search.Candidate
	if err := json.Unmarshal([]byte(`{"a":1}`), &c); err == nil {
		t.Errorf("an object was read as %v", c)
	}
}
