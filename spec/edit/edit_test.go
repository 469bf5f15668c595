package edit_test

import (
	"strings"
	"testing"
	"time"

	"tuner/measure"
	"tuner/spec"
	"tuner/spec/edit"
)

// A profile with flags means what it meant, apart from the fields that the flags set. Comments stay.
func TestProfile(t *testing.T) {
	t.Parallel()
	check := func(text string, f edit.Fields, wantOutput string, wantBudget time.Duration, wantP99 float64) {
		t.Helper()
		changed, err := edit.Profile([]byte(text), f)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		p, err := spec.ParseProfile("dir/p.yaml", changed)
		if err != nil {
			t.Errorf("%s becomes %s: %v", text, changed, err)
			return
		}
		p99 := 0.0
		for _, c := range p.Goal.Constraints {
			if c.Metric == measure.LatencyP99 {
				p99 = *c.Max
			}
		}
		if p.Output != wantOutput || p.Search.Budget.Time != wantBudget || p99 != wantP99 || !strings.Contains(string(changed), "# why") {
			t.Errorf("%s becomes %s: output %s, budget %v, p99 %v", text, changed, p.Output, p.Search.Budget.Time, p99)
		}
	}
	all := edit.Fields{P99: "30ms", Budget: "2m", Output: "other"}
	check("model: a # why\n", all, "dir/other", 2*time.Minute, 0.030)
	check("# why\nmodel: a\noutput: o\nsearch: {budget: {time: 1m, trials: 3}}\nconstraints: {p99: 5ms, memory: 1GB}\n", all, "dir/other", 2*time.Minute, 0.030)
	check("model: a\nconstraints: # why\n  perf_latency_p99: {max: 5}\n", all, "dir/other", 2*time.Minute, 0.030)
	check("model: a\noutput: o # why\nsearch: {budget: 1m}\nconstraints: {latency_p99: {max: 5}}\n", edit.Fields{}, "dir/o", time.Minute, 0.005)
	check("model: a\noutput: o # why\nsearch: {budget: 1m}\nconstraints: {latency_p99: {max: 5}}\n", edit.Fields{Budget: "3m"}, "dir/o", 3*time.Minute, 0.005)
}
