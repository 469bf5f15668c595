package figures

import (
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/measure"
	"tuner/report/reporttest"
)

// The text about a bottleneck has the figures that show it.
func TestBottleneckTexts(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	check := func(bottleneck analyze.Bottleneck, want string, change func(*analyze.Breakdown, *analyze.Config)) {
		t.Helper()
		s, c := r.Explanation.Subjects[0], r.Configs[0]
		breakdown, point := *s.Breakdown, *c.Best
		s.Bottleneck, s.Breakdown, c.Best = bottleneck, &breakdown, &point
		change(&breakdown, &c)
		if got := bottleneckText(r, s, c) + " " + adviceText(r, s, c); !strings.Contains(got, want) {
			t.Errorf("%s: %q is missing in %q", bottleneck, want, got)
		}
	}
	nothing := func(*analyze.Breakdown, *analyze.Config) {}
	check(analyze.BottleneckCompute, "The 2 cores are busy", nothing)
	check(analyze.BottleneckCompute, "1.0 of 2 cores are idle", func(b *analyze.Breakdown, _ *analyze.Config) { b.EngineCPU = 0.95 })
	check(analyze.BottleneckCompute, "The GPU computes for 97 % of the time", func(b *analyze.Breakdown, _ *analyze.Config) { b.GPU = 0.97 })
	check(analyze.BottleneckQueue, "delay a request by 2.00 ms", func(_ *analyze.Breakdown, c *analyze.Config) { c.Setup.QueueDelay = 2e6 })
	check(analyze.BottleneckQueue, "Requests arrive unevenly", nothing)
	check(analyze.BottleneckClient, "Client, wire and front end limit it", nothing)
	check(analyze.BottleneckClient, "The client limits it: the load generator was short of CPU", func(_ *analyze.Breakdown, c *analyze.Config) {
		c.Best.Flags = []measure.Flag{measure.FlagClientCPU}
	})
	check(analyze.BottleneckLoad, "Nothing is saturated: 0.50 of 2 instances are", func(b *analyze.Breakdown, _ *analyze.Config) { b.Busy = 0.5 })
	check(analyze.BottleneckUnknown, "statistics are missing", nothing)
}
