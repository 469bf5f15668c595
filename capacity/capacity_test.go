package capacity

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"tuner/capacity/replica"
	"tuner/capacity/traffic"
	"tuner/measure"
	"tuner/search/queuesim"
)

// box is a replica that serves one request at a time in 10 ms.
func box(kind string, price float64) replica.Replica {
	return replica.Replica{
		Type: kind, Configuration: "config_1", Setup: "1 × fp32", Price: price, Rows: 1, Batcher: queuesim.Batcher{Instances: 1, MaxBatch: 1},
		Curve: queuesim.ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}, Spread: 0.1}, Capacity: 100, Cores: 2,
		Usage: []replica.Usage{{Rate: 50, Cores: 1.2}, {Rate: 100, Cores: 2}}, Launch: 10 * time.Second,
	}
}

func question(t *testing.T, text string) Question {
	t.Helper()
	x, err := traffic.Read(text, 1)
	if err != nil {
		t.Fatal(err)
	}
	return Question{
		Traffic: x, Limit: 100 * time.Millisecond, Share: 0.99, Balancer: queuesim.Random, Scaler: HPA, Startup: -1,
		Window: DefaultWindow, Min: 1, Max: 50, Seed: 1,
	}
}

func find(t *testing.T, q Question, replicas ...replica.Replica) Plan {
	t.Helper()
	p, err := Find(q, "model", replicas)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// M/D/1 waits longer than w services with probability C exp(−θ w), where ρ (exp θ − 1) = θ and C = (1 − ρ)/(ρ
// exp θ − 1). At ρ = 0.77, θ is 0.50, and C exp(−9 θ) is 0.01: a replica keeps ten times its service time for
// 99 % of 77 requests/s, less for the spread. So 430/s need six.
func TestConstantTrafficNeedsAFixedNumber(t *testing.T) {
	t.Parallel()
	p := find(t, question(t, "mean 430/s"), box("c7i", 1))
	if p.Status != Satisfied || p.Best.Scaling.Min > 6 || p.Best.Mean < 5.5 || p.Best.Mean > 6.5 {
		t.Errorf("%s: %+v", p.Status, p.Best)
	}
	if math.Abs(p.Best.Cost-24*p.Best.Mean) > 0.01*p.Best.Cost {
		t.Errorf("%g a day for %g replicas at 1 an hour", p.Best.Cost, p.Best.Mean)
	}
}

// With waves, an autoscaler costs less than a fixed number, and the chosen fleet keeps its promise.
func TestWavesPayForAnAutoscaler(t *testing.T) {
	t.Parallel()
	q := question(t, "peak 1000/s, office hours")
	p := find(t, q, box("c7i", 1))
	if p.Status != Satisfied || p.Best.Scaling.Scaler != HPA || p.Best.Within < q.Share {
		t.Fatalf("%s: %+v", p.Status, p.Best)
	}
	if len(p.Alternatives) != mostAlternatives {
		t.Fatalf("%d alternatives", len(p.Alternatives))
	}
	for _, a := range p.Alternatives {
		if a.Cost < p.Best.Cost && a.Within >= q.Share+(1-q.Share)/4 && a.WorstDay >= q.Share {
			t.Errorf("an alternative is cheaper and keeps the limit: %+v", a)
		}
		if a.About == "" || reflect.DeepEqual(a, p.Best) {
			t.Errorf("an alternative that is none: %+v", a)
		}
	}
	q.Scaler = Fixed
	if fixed := find(t, q, box("c7i", 1)); fixed.Best.Scaling.Min != fixed.Best.Scaling.Max || fixed.Best.Cost < 1.5*p.Best.Cost {
		t.Errorf("a fixed number costs %g, an autoscaler %g", fixed.Best.Cost, p.Best.Cost)
	}
	if p.Usual == nil || p.Best.Cost < 0.9*p.Clairvoyant.Cost {
		t.Errorf("usual %v; chosen %g, clairvoyant %g", p.Usual, p.Best.Cost, p.Clairvoyant.Cost)
	}
}

// One of five days has a burst each hour. All days together may miss little enough with a fleet that misses too
// much on that day. The plan keeps its promise on each day.
func TestEveryDayKeepsItsPromise(t *testing.T) {
	t.Parallel()
	q := question(t, "mean 400/s")
	perDay := int(24 * time.Hour / traffic.Step)
	day := q.Traffic.Requests[0]
	q.Traffic.Requests = nil
	for i := range 5 * perDay {
		n := day
		if i/perDay == 2 && i%int(time.Hour/traffic.Step) < 4 {
			n *= 1.8
		}
		q.Traffic.Requests = append(q.Traffic.Requests, n)
	}
	p := find(t, q, box("c7i", 1))
	if p.Status != Satisfied || p.Best.WorstDay < q.Share {
		t.Errorf("%s: %.4f of the requests within the limit on the worst day, %.4f in all", p.Status, p.Best.WorstDay, p.Best.Within)
	}
}

// The cheaper of two equal types wins, and the other one is an alternative at its own price.
func TestPricesDecide(t *testing.T) {
	t.Parallel()
	p := find(t, question(t, "peak 1000/s, office hours"), box("dear", 1.1), box("cheap", 1))
	if p.Best.Type != "cheap" {
		t.Errorf("%s wins", p.Best.Type)
	}
	found := false
	for _, a := range p.Alternatives {
		found = found || a.Type == "dear" && math.Abs(a.Cost/p.Best.Cost-1.1) < 0.01
	}
	if !found {
		t.Errorf("alternatives %+v", p.Alternatives)
	}
}

// A limit below the time of a batch, and too few replicas, are said.
func TestWhatCannotBeKeptIsSaid(t *testing.T) {
	t.Parallel()
	q := question(t, "mean 450/s")
	q.Limit = 5 * time.Millisecond
	if p := find(t, q, box("c7i", 1)); p.Status != Infeasible || p.Best.Within > 0.5 {
		t.Errorf("%s: %+v", p.Status, p.Best)
	}
	q = question(t, "mean 450/s")
	q.Max = 3
	if p := find(t, q, box("c7i", 1)); p.Status != Infeasible || p.Best.Within > 0.5 || len(p.Notes) == 0 {
		t.Errorf("%s: %+v, notes %q", p.Status, p.Best, p.Notes)
	}
}

// Where a replica keeps the limit at no rate, the clairvoyant fleet has all replicas all the time.
func TestClairvoyantOfAHopelessLimit(t *testing.T) {
	t.Parallel()
	q := question(t, "mean 450/s")
	q.Limit = 5 * time.Millisecond
	p := find(t, q, box("c7i", 1))
	if c := p.Clairvoyant; c.Scaling.Min != q.Max || c.Scaling.Max != q.Max || math.Abs(c.Mean-float64(q.Max)) > 0.01 {
		t.Errorf("%+v", c)
	}
}

// A plan leaves room for days that the traffic does not show. A fleet that keeps the asked share without
// that room is refused, and the sentence says so.
func TestTheRoomOfAPlanIsSaid(t *testing.T) {
	t.Parallel()
	p := Plan{Status: Infeasible, Asked: Asked{Limit: 0.05, Share: 0.99, MinReplicas: 1, MaxReplicas: 3}, Best: Fleet{Within: 0.991, WorstDay: 0.99}}
	if text := summary(&p); !strings.Contains(text, "99 % of the requests within 50 ms on every day, and 99.25 % over all days") {
		t.Error(text)
	}
}

// The same question has the same answer.
func TestAPlanIsReproducible(t *testing.T) {
	t.Parallel()
	q := question(t, "peak 500/s, evenings")
	if a, b := find(t, q, box("c7i", 1)), find(t, q, box("c7i", 1)); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v and %+v", a, b)
	}
}

// No request is lost: what came is answered or waits.
func TestServeKeepsAllRequests(t *testing.T) {
	t.Parallel()
	q := question(t, "mean 450/s")
	r := box("c7i", 1)
	x := newSite(&q, &r, q.table(&r))
	f := fleetState{ready: 2}
	came, answered := 0.0, 0.0
	for i := range 100 {
		n := float64(i%7) * 1000
		got := f.serve(x, n)
		came, answered = came+n, answered+got.answered
		if got.answered > 2*x.highest*stepSeconds+1e-9 {
			t.Fatalf("step %d: %g requests answered, and two replicas answer %g", i, got.answered, 2*x.highest*stepSeconds)
		}
	}
	if math.Abs(came-answered-f.backlog) > 1e-6*came {
		t.Errorf("%g came, %g were answered, %g wait", came, answered, f.backlog)
	}
}

// Waiting for a backlog counts: with a wait from 0 to 180 ms, half of the requests have less than the 90
// ms that the limit leaves.
func TestWaitsCount(t *testing.T) {
	t.Parallel()
	q := question(t, "mean 450/s")
	r := box("c7i", 1)
	x := newSite(&q, &r, q.table(&r))
	got := served{rate: x.highest, wait0: 0, wait1: 0.18}.within(x, 0)
	if want := x.limits[0].at(x.highest) / 2; math.Abs(got-want) > 1e-9 {
		t.Errorf("a share of %g, want %g", got, want)
	}
	if got := (served{rate: x.highest, wait0: 1, wait1: 2}).within(x, 0); got != 0 {
		t.Errorf("a share of %g after a second", got)
	}
}

// The table of a steady rate agrees with the event simulation of the whole fleet.
func TestStepsFollowTheEventSimulation(t *testing.T) {
	t.Parallel()
	for _, how := range queuesim.Balancers() {
		q := question(t, "mean 225/s")
		q.Balancer, q.Scaler, q.Min, q.Max = how, Fixed, 3, 3
		q.Limit = 30 * time.Millisecond
		p := find(t, q, box("c7i", 1))
		r := box("c7i", 1)
		exact := new(queuesim.Fleet).Simulate(3, how, r.Batcher, r.Curve, measure.Load{RequestRate: 225, BatchSize: 1}, queuesim.Options{Requests: 100_000, Seed: 9, Within: []float64{0.03}})
		if math.Abs(p.Best.Within-exact.Within[0]) > 0.015 {
			t.Errorf("%s: a share of %.4f, the event simulation says %.4f", how, p.Best.Within, exact.Within[0])
		}
	}
}

func TestImpossibleQuestions(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*Question){
		func(q *Question) { q.Limit = 0 }, func(q *Question) { q.Share = 1 }, func(q *Question) { q.Min = 0 }, func(q *Question) { q.Max = 0 },
		func(q *Question) { q.Max = MostReplicas + 1 }, func(q *Question) { q.Window = time.Second }, func(q *Question) { q.Window = 40 * time.Second }, func(q *Question) { q.Startup = 2 * time.Hour },
	} {
		q := question(t, "mean 450/s")
		change(&q)
		if _, err := Find(q, "model", []replica.Replica{box("c7i", 1)}); err == nil {
			t.Errorf("%+v has an answer", q)
		}
	}
}
