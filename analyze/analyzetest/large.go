package analyzetest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"tuner/analyze"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/search"
	"tuner/spec/knobs"
)

// Large returns a result with n configurations and the default, each at four concurrencies. It
// tests code that must handle many configurations. The ranking comes from the formula, not from
// package analyze.
func Large(t testing.TB, n int) analyze.Result {
	t.Helper()
	best := Candidate(2, 1, 16)
	small, err := analyze.Analyze(New(t, Profile).Measure(search.Candidate{}, 4, 8, 16, 32).Measure(best, 4, 8, 16, 32).End("the space is exhausted", false).Campaign(), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, model := small, small.Configs[0]
	r.Top = 3
	r.Configs = []analyze.Config{model}
	for i := 1; i < n; i++ {
		c := model
		c.Candidate = Candidate(1+i%8, 1+i/8%4, 1<<(i/32%6)).With(search.KnobMaxQueueDelay, search.DurationValue(time.Duration(i/192)*10*time.Microsecond))
		if c.Deployed, err = knobs.Apply(small.Default().Deployed, c.Candidate); err != nil {
			t.Fatal(err)
		}
		text, err := modelconfig.Format(c.Deployed)
		if err != nil {
			t.Fatal(err)
		}
		c.Text = string(text)
		c.Name, c.Rank, c.TiedWith, c.Points = fmt.Sprintf("minilm_config_%d", i), i+1, nil, nil
		for at, p := range model.Points {
			c.Points = append(c.Points, slower(p, math.Pow(0.9999, float64(i))*(1-0.02*float64((i+at)%7))))
		}
		c.Best, c.Gain = &c.Points[1], &measure.Estimate{Value: 1.5, Lo: 1.4, Hi: 1.6}
		r.Configs = append(r.Configs, c)
		r.Course = append(r.Course, analyze.CourseStep{Name: c.Name, Ordinal: i, Event: search.Event{
			Trial: search.Trial{Candidate: c.Candidate, Load: c.Best.Load, Phase: search.PhaseSearch}, Elapsed: time.Duration(i) * time.Second}})
	}
	base := small.Default()
	base.Rank = n + 1
	r.Configs = append(r.Configs, base)
	r.Tried = len(r.Configs)
	return r
}

// slower returns a point with its throughput divided and its latencies multiplied by a factor.
func slower(p analyze.Point, factor float64) analyze.Point {
	values := map[measure.Metric]measure.Estimate{}
	for m, e := range p.Values {
		by := factor
		if info, _ := m.Info(); info.Unit == measure.Seconds {
			by = 1 / factor
		} else if m != measure.Throughput {
			by = 1
		}
		values[m] = measure.Estimate{Value: e.Value * by, Lo: e.Lo * by, Hi: e.Hi * by}
	}
	p.Values = values
	return p
}
