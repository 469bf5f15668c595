package load

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tuner/measure"
)

// A long run has as many windows and sub-windows as a short one. Its figures equal those of a run
// whose windows were not joined.
func TestWindowsOfALongRunAreJoined(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]func(*testing.T, *server) Options{
		"closed loop": func(_ *testing.T, s *server) Options { return at(s, 4) },
		"open loop":   func(t *testing.T, s *server) Options { return every(t, s, 5*ms) },
		"by requests": func(_ *testing.T, s *server) Options {
			o := at(s, 4)
			o.Requests = 200
			return o
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var results [2]Result
				for i, most := range []int{0, 8} {
					s := constant(20 * ms)
					s.refuse = func(n int64) error {
						if n == 1000 {
							return errInterrupted
						}
						return nil
					}
					o := options(t, s)
					o.MostWindows = most
					joined, edges := 0, 0
					o.Joined = func() { joined++ }
					o.Edge = func(context.Context, int) error { edges++; return nil }
					o.More = func(parts [][]measure.Window) bool {
						w := parts[0]
						if most > 0 && len(w) >= most {
							t.Errorf("there are %d windows", len(w))
						}
						return w[len(w)-1].Start+w[len(w)-1].Duration < time.Minute
					}
					var err error
					if results[i], err = run(t.Context(), o, newSleeper); err != nil {
						t.Fatal(err)
					}
					// 8 windows of 1 s, 4 of 2 s, 4 of 4 s, 4 of 8 s: the end is at most 64 s after
					// the beginning.
					if most > 0 && (joined < 3 || edges < 18 || edges > 22) {
						t.Errorf("joined %d times, %d edges", joined, edges)
					}
				}
				plain, joined := sumOf(results[0].Windows), sumOf(results[1].Windows)
				for _, w := range results[1].Windows {
					if len(w.Sub) < 10 || len(w.Sub) > 21 || w.Duration < 7*time.Second {
						t.Errorf("a window of %v has %d parts", w.Duration, len(w.Sub))
					}
					checkParts(t, w)
				}
				near := func(a, b float64) bool { return a > 0.99*b && a < 1.01*b }
				rate := func(w measure.Window) float64 { return float64(w.Requests) / w.Duration.Seconds() }
				if !near(rate(joined), rate(plain)) || !near(joined.InFlight, plain.InFlight) || joined.Errors != 1 || joined.FirstError == "" ||
					// the request after the error has no send delay
					joined.SendDelay.Count() < joined.Requests-1 || len(joined.Flags) == 0 {
					t.Errorf("joined: %d requests in %v, %v in flight, %d errors, %d send delays; else %d in %v, %v in flight", joined.Requests, joined.Duration,
						joined.InFlight, joined.Errors, joined.SendDelay.Count(), plain.Requests, plain.Duration, plain.InFlight)
				}
				for _, q := range []float64{0.5, 0.99} {
					a, _ := measure.Measurement{Windows: results[0].Windows}.Percentile(q)
					b, _ := measure.Measurement{Windows: results[1].Windows}.Percentile(q)
					if a.Value != b.Value {
						t.Errorf("the %v-quantile is %v, without joining %v", q, b, a)
					}
				}
			})
		})
	}
}

// sumOf joins all windows into one.
func sumOf(windows []measure.Window) measure.Window {
	all := windows[0]
	for _, w := range windows[1:] {
		all = joinWindows(all, w)
	}
	return all
}

// Responses is set if there is not one response per request, also in joined windows.
func TestResponsesOfJoinedWindows(t *testing.T) {
	t.Parallel()
	one := measure.Window{Duration: time.Second, Requests: 5}
	many := measure.Window{Duration: time.Second, Requests: 5, Responses: 20, Flags: []measure.Flag{"b", "a"}}
	for _, c := range []struct {
		a, b  measure.Window
		want  int
		flags []measure.Flag
	}{
		{one, one, 0, nil}, {one, many, 25, []measure.Flag{"a", "b"}}, {many, many, 40, []measure.Flag{"a", "b"}},
	} {
		if got := joinWindows(c.a, c.b); got.Responses != c.want || got.Requests != 10 || !slices.Equal(got.Flags, c.flags) {
			t.Errorf("%d responses to %d requests, flags %v; want %d and %v", got.Responses, got.Requests, got.Flags, c.want, c.flags)
		}
	}
}
