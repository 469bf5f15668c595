package preparation

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tuner/measure"
	"tuner/model/onnx/build"
	"tuner/profile"
	"tuner/search"
	"tuner/spec"
)

// All models together have the time of one. What the first does not use is for those after it.
func TestTimeForVariantsIsShared(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for _, c := range []struct {
		all, spent time.Duration
		models     int
		want       time.Duration
	}{
		{60 * second, 0, 1, 60 * second},
		{60 * second, 0, 3, 20 * second},
		{60 * second, 4 * second, 2, 28 * second}, // the first took 4 s of its 20
		{60 * second, 60 * second, 1, 1},          // nothing is left, and 0 would mean no bound
		{60 * second, 61 * second, 1, 1},
		{0, time.Hour, 2, 0},
	} {
		if got := shareOf(c.all, c.spent, c.models); got != c.want {
			t.Errorf("of %v after %v the next of %d models has %v, want %v", c.all, c.spent, c.models, got, c.want)
		}
	}
}

// Models that do not fit together are refused by the sizes of their files, external data included, before
// anything is launched.
func TestMoreModelsThanMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := build.MLP().Write(filepath.Join(dir, name+".onnx"), 1); err != nil { // weights beside the model
			t.Fatal(err)
		}
	}
	const text = `models:
  a: {model: a.onnx, load: {request_rate: 1}, constraints: {latency_p99: 1s}}
  b: {model: b.onnx, load: {request_rate: 1}, constraints: {latency_p99: 1s}}
`
	p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var subjects []profile.Subject
	var sum int64
	for _, m := range p.Models {
		s, err := profile.OpenSubject(m, profile.Place{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Files[0].Content() <= s.Files[0].Bytes {
			t.Fatalf("%s has %d bytes with its data, and %d without", m.Name, s.Files[0].Content(), s.Files[0].Bytes)
		}
		subjects, sum = append(subjects, s), sum+s.Files[0].Content()
	}
	limited := p
	allowed := float64(sum - 1)
	limited.Goal.Constraints = append(slices.Clone(p.Goal.Constraints), search.Constraint{Metric: measure.Memory, Max: &allowed})
	for name, c := range map[string]struct {
		profile spec.Profile
		usable  int64
		refused bool
	}{
		"they fit exactly":              {p, sum, false},
		"one byte is missing":           {p, sum - 1, true},
		"an unknown machine":            {p, 0, false},
		"the profile allows less":       {limited, 2 * sum, true},
		"the machine has less than all": {limited, 1, true},
	} {
		err := checkMemory(c.profile, subjects, c.usable)
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
