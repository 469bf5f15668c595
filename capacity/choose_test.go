package capacity

import (
	"fmt"
	"testing"

	"tuner/measure"
	"tuner/report/result"
)

// The configurations are chosen by the percentile that the question asks for. The last one has the
// highest throughput at which half of the requests keep 10 ms, and a slow tail.
func TestConfigurationsAreChosenByTheAskedPercentile(t *testing.T) {
	t.Parallel()
	point := func(rate, p50, p99 float64) []result.Point {
		return []result.Point{{Sample: result.Sample{Values: map[measure.Metric]result.Estimate{measure.Throughput: {Value: rate}, measure.LatencyP50: {Value: p50}, measure.LatencyP99: {Value: p99}}}}}
	}
	var r result.Result
	for i := range mostConfigurations {
		r.Configurations = append(r.Configurations, result.Configuration{Name: fmt.Sprintf("config_%d", i), Points: point(float64(100+i), 0.005, 0.009)})
	}
	r.Configurations = append(r.Configurations, result.Configuration{Name: "tail", Points: point(900, 0.005, 0.09)})
	for _, c := range []struct {
		share float64
		want  string
	}{
		{0.5, "tail"},
		{0.99, "config_3"},
		{0.95, "config_3"}, // not measured: the 99th percentile stands for it
	} {
		if got := mostWithin(r, 0.01, c.share); len(got) != mostConfigurations || got[0].Name != c.want {
			t.Errorf("share %g: %d configurations, first %s, want %s", c.share, len(got), got[0].Name, c.want)
		}
	}
}
