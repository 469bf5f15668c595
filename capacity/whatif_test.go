package capacity

import (
	"testing"
	"time"

	"tuner/capacity/replica"
	"tuner/capacity/traffic"
)

func replicasOf(kinds ...string) (list []replica.Replica) {
	for _, kind := range kinds {
		list = append(list, box(kind, 1))
	}
	return list
}

// The answer in the middle is the plan's own, more requests cost more, and a stricter limit too.
func TestWhatIfs(t *testing.T) {
	t.Parallel()
	q := question(t, "peak 500/s, office hours")
	q.Traffic.Requests = q.Traffic.Requests[:traffic.PerDay] // 90 plans of a week take long
	w, err := WhatIfs(q, replicasOf("c7i", "c7g"))
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Types) != 2 || len(w.Answers) != 2 {
		t.Fatalf("types %v", w.Types)
	}
	at := func(kind, rate, limit, startup int) Answer {
		return w.Answers[kind][(rate*len(w.Limits)+limit)*len(w.Startups)+startup]
	}
	p := find(t, q, box("c7i", 1))
	if a := at(0, 2, 1, 1); a.Hours != p.Best.Hours || a.Min != p.Best.Scaling.Min || !a.Satisfied {
		t.Errorf("%+v, and the plan is %+v", a, p.Best)
	}
	// elsewhere too, where tables are shared between questions
	for _, i := range [][3]int{{0, 0, 2}, {0, 2, 0}, {4, 1, 2}, {4, 2, 2}} {
		asked := q
		asked.Traffic = q.Traffic.Times(w.Rates[i[0]])
		asked.Limit = time.Duration(w.Limits[i[1]] * float64(time.Second))
		asked.slower = w.Startups[i[2]]
		p := find(t, asked, box("c7i", 1))
		want := Answer{p.Status == Satisfied, p.Best.Configuration, p.Best.Scaling.Min, p.Best.Scaling.Max, Significant(p.Best.Scaling.Target), p.Best.Hours, p.Best.Within, p.Best.P99}
		if got := at(0, i[0], i[1], i[2]); got != want {
			t.Errorf("at %v: %+v, and the plan is %+v", i, got, want)
		}
	}
	for i := 1; i < len(w.Rates); i++ {
		if at(0, i, 1, 1).Hours < at(0, i-1, 1, 1).Hours {
			t.Errorf("%g × the traffic costs less than %g ×", w.Rates[i], w.Rates[i-1])
		}
	}
	// the longest start that a question may have
	q.Startup = time.Hour
	q.Traffic.Requests = q.Traffic.Requests[:traffic.PerDay/24]
	if _, err := WhatIfs(q, replicasOf("c7i")); err != nil {
		t.Error(err)
	}
	if strict, loose := at(1, 2, 0, 1).Hours, at(1, 2, 2, 1).Hours; strict < loose {
		t.Errorf("%g h within the stricter limit, %g h within the looser one", strict, loose)
	}
}
