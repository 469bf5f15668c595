package posterior

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tuner/measure"
)

// exampleSites returns cells of three processes at several loads. The last cell and its process
// were never measured.
func exampleSites() []site {
	var list []site
	for i, name := range []string{"a", "a", "b", "b", "c", "d"} {
		s := spot(name)
		s.at = [3]float64{float64(i), float64(i % 2), 0}
		s.prior = 0.1 * float64(i)
		list = append(list, s)
	}
	return list
}

func exampleProcess(t *testing.T, n int) *process {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	sites := exampleSites()
	var list []observation
	for i := range n {
		at := random.IntN(5)
		list = append(list, observation{
			site: sites[at], at: 3 * float64(i), launch: 10*(1+i/8) + at/2, withheld: 0.1 * random.NormFloat64(),
			log: random.NormFloat64(), variance: 0.01, seconds: 2,
		})
	}
	return fixed(t, usual(measure.Throughput), list)
}

// Computation by sites equals computation by trials.
func TestViewIsTheProcess(t *testing.T) {
	t.Parallel()
	p := exampleProcess(t, 30)
	v, sites := p.view(p.parts[0], true), exampleSites()
	want := p.ask(sites)
	residuals := make([]Residual, len(sites))
	for i := range sites {
		residuals[i] = v.At(&sites[i].Coordinates)
	}
	for i, r := range residuals {
		near(t, "mean", sites[i].prior+r.Mean, want.cells[i].mean, 1e-9)
		near(t, "variance", r.Variance, want.covariance(i, i), 1e-9)
		reference := v.Against(r)
		for k, other := range residuals {
			near(t, "covariance", reference.Covariance(other), want.covariance(i, k), 1e-9)
		}
	}
	s := p.parts[0].scales
	near(t, "variance of a trial", v.TrialVariance(4), s.trial*s.trial+s.fast*s.fast+0.01*2.0/4, 1e-12)
}

// The residual at coordinates does not depend on questions about others before. The others differ from them in pool,
// server and place, with and without trials.
func TestViewIsAskedInAnyOrder(t *testing.T) {
	t.Parallel()
	p := exampleProcess(t, 30)
	var all []Coordinates
	for _, pool := range []string{"a", "b", "d", "e"} {
		for _, server := range []string{pool, pool + "2", "d"} {
			for level := range 3 {
				c := named(pool, server)
				c.at = [3]float64{float64(level), float64(level % 2), 0}
				all = append(all, c)
			}
		}
	}
	for _, isPredicted := range []bool{true, false} {
		used := p.view(p.parts[0], isPredicted)
		for range 2 {
			for i := range all {
				fresh := p.view(p.parts[0], isPredicted)
				got, want := used.At(&all[i]), fresh.At(&all[i])
				if got.Mean != want.Mean || got.Variance != want.Variance || !slices.Equal(got.kernels, want.kernels) || got.at != &all[i] {
					t.Errorf("%d: %+v, asked alone %+v", i, got, want)
				}
				other := used.At(&all[len(all)/2])
				if got, want := used.Against(other).Covariance(got), fresh.Against(fresh.At(&all[len(all)/2])).Covariance(want); got != want {
					t.Errorf("%d: a covariance of %v, asked alone %v", i, got, want)
				}
			}
		}
	}
}

// The predicted information of a trial equals its information after the measurement: in the process
// of the last trial, and in a new one.
func TestAheadIsWhatATrialTells(t *testing.T) {
	t.Parallel()
	p := exampleProcess(t, 30)
	v, sites := p.view(p.parts[0], true), exampleSites()
	last := p.list[len(p.list)-1]
	running := p.list[slices.IndexFunc(p.list, func(o observation) bool { return o.pool == sites[1].pool })].launch
	for _, launch := range []int{running, 99} {
		next := observation{site: sites[1], at: last.at + 4, launch: launch, variance: 0.01, seconds: 2}
		q := newProcess(measure.Throughput, append(slices.Clone(p.list), next))
		q.begin, q.end = p.begin, p.end // the same mean speed of the machine
		part, ok := q.condition(p.parts[0].scales)
		if !ok {
			t.Fatal("not positive definite")
		}
		part.probability = 1
		q.prepare(&part)
		q.parts = append(q.parts, part)
		before, after := p.ask(sites), q.ask(sites)
		ahead := v.Ahead(next.at, next.seconds, launch)
		x := v.At(&sites[1].Coordinates)
		near(t, "what a trial tells of its cell", ahead.Information(x, 1), before.covariance(1, 1)-after.covariance(1, 1), 1e-9)
		for i := range sites {
			y := v.At(&sites[i].Coordinates)
			difference := func(a asked) float64 { return a.covariance(1, 1) + a.covariance(i, i) - 2*a.covariance(1, i) }
			apart := x.Variance - v.Against(y).Covariance(x)
			near(t, "what a trial tells of a difference", ahead.InformationBetween(x, y, apart, 1), difference(before)-difference(after), 1e-9)
		}
	}
}

// Before the first trial a view is the prior.
func TestViewWithoutTrials(t *testing.T) {
	t.Parallel()
	v := (&Posterior{}).View(measure.LatencyP99, true)
	x := CoordinatesBeyond(measure.Load{Concurrency: 8, BatchSize: 1}, 4)
	r := v.At(&x)
	s := usual(measure.LatencyP99)
	if r.Mean != 0 || v.IsSeen() {
		t.Errorf("a mean of %g", r.Mean)
	}
	want := s.kernel(likeness{global: 1, shared: 1, pool: 1, smooth: 1, cell: 1}) + s.course(0)
	near(t, "variance", r.Variance, want, 1e-12)
	near(t, "covariance", v.Against(r).Covariance(r), want, 1e-12)
	if math.IsNaN(v.TrialVariance(1)) {
		t.Error("the variance of a trial is not a number")
	}
}

func BenchmarkViewAt(b *testing.B) {
	p := exampleProcess(&testing.T{}, 100)
	v, sites := p.view(p.parts[0], true), exampleSites()
	for b.Loop() {
		v.At(&sites[5].Coordinates)
	}
}
