package plotstyle

import (
	"strings"
	"testing"
)

func TestLinearTicks(t *testing.T) {
	t.Parallel()
	for most, want := range map[float64]string{717: "0 200 400 600", 0.26: "0 0.05 0.1 0.15 0.2 0.25", 7: "0 1 2 3 4 5 6 7", 1: "0 0.2 0.4 0.6 0.8 1"} {
		var labels []string
		for _, tick := range LinearTicks(most) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("to %g: ticks are %q, want %q", most, got, want)
		}
	}
}
