package words

import (
	"strings"
	"testing"
)

// A name longer than any known one is not compared with them.
func TestNearestOfLongNames(t *testing.T) {
	t.Parallel()
	if got := Nearest(strings.Repeat("max_batch_size", 10000), []string{"max_batch_size"}); got != "" {
		t.Errorf("near to a long name is %q", got)
	}
}

// A wrong hint is worse than none: as much as a third of a name may be misspelt.
func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"model", "name", "load", "objective", "concurrency", "png", "csv", "latency_p99", "input_ids", "budget"}
	for name, want := range map[string]string{
		"modle": "model", "concurency": "concurrency", "budgt": "budget", "p99": "latency_p99", "ids": "input_ids", "obj": "objective", "nam": "name",
		"goal": "", "time": "", "pdf": "", "x": "", "": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
