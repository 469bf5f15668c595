package figures

import (
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/bottleneck"
	"tuner/measure"
	"tuner/report/reporttest"
)

// The text about a bottleneck has the figures that show it.
func TestBottleneckTexts(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	check := func(bottleneck bottleneck.Kind, want string, change func(*bottleneck.Breakdown, *analyze.Config)) {
		t.Helper()
		s, c := r.Explanation.Subjects[0], r.Configs[0]
		breakdown, point := *s.Breakdown, *c.Best
		s.Bottleneck, s.Breakdown, c.Best = bottleneck, &breakdown, &point
		change(&breakdown, &c)
		if got := bottleneckText(r, s, c) + " " + adviceText(r, s, c); !strings.Contains(got, want) {
			t.Errorf("%s: %q is missing in %q", bottleneck, want, got)
		}
	}
	nothing := func(*bottleneck.Breakdown, *analyze.Config) {}
	check(bottleneck.Compute, "The 2 cores are busy", nothing)
	check(bottleneck.Compute, "1.0 of 2 cores are idle", func(b *bottleneck.Breakdown, _ *analyze.Config) { b.EngineCPU = 0.95 })
	check(bottleneck.Compute, "The GPU computes for 97 % of the time", func(b *bottleneck.Breakdown, _ *analyze.Config) { b.GPU = 0.97 })
	check(bottleneck.Queue, "delay a request by 2.00 ms", func(_ *bottleneck.Breakdown, c *analyze.Config) { c.Setup.QueueDelay = 2e6 })
	check(bottleneck.Queue, "Requests arrive unevenly", nothing)
	check(bottleneck.Client, "Client, wire and front end limit it", nothing)
	check(bottleneck.Client, "The client limits it: the load generator was short of CPU", func(_ *bottleneck.Breakdown, c *analyze.Config) {
		c.Best.Flags = []measure.Flag{measure.FlagClientCPU}
	})
	check(bottleneck.Load, "Nothing is saturated: 0.50 of 2 instances are", func(b *bottleneck.Breakdown, _ *analyze.Config) { b.Busy = 0.5 })
	check(bottleneck.Unknown, "statistics are missing", nothing)
}
