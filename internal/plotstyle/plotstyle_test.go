package plotstyle

import (
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

func labels(ticks []plot.Tick) string {
	var list []string
	for _, tick := range ticks {
		list = append(list, tick.Label)
	}
	return strings.Join(list, " ")
}

func TestLinearTicks(t *testing.T) {
	t.Parallel()
	for most, want := range map[float64]string{717: "0 200 400 600", 0.26: "0 0.05 0.1 0.15 0.2 0.25", 7: "0 1 2 3 4 5 6 7", 1: "0 0.2 0.4 0.6 0.8 1"} {
		if got := labels(LinearTicks(most)); got != want {
			t.Errorf("to %g: ticks are %q, want %q", most, got, want)
		}
	}
}

func TestDecadeTicks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		least, most float64
		want        string
	}{
		{15, 101, "15 20 30 50 70 100"},
		{5, 120, "5 10 20 50 100"},
		{0.05, 20000, "0.1 1 10 100 1000 10000"},
	} {
		if got := labels(DecadeTicks(c.least, c.most)); got != c.want {
			t.Errorf("from %g to %g: ticks are %q, want %q", c.least, c.most, got, c.want)
		}
	}
}
