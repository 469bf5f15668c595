package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tuner/capacity/autoscaler"
	"tuner/capacity/replica"
	"tuner/capacity/traffic"
	"tuner/internal/words"
)

// mostAlternatives is the number of alternatives of a plan.
const mostAlternatives = 3

// Find answers a question with one of the replicas. model is the served name. It returns an error for
// a question without an answer; a limit that nothing keeps is a plan with that status.
func Find(q Question, model string, replicas []replica.Replica) (Plan, error) {
	if err := q.check(); err != nil {
		return Plan{}, err
	}
	if len(replicas) == 0 {
		return Plan{}, errors.New("a plan needs a configuration with figures")
	}
	s := newSearcher(&q, replicas)
	f := finding{searcher: s}
	f.collect()
	p := Plan{Format: Format, Model: model, Asked: s.asked(), Configurations: f.candidates, Status: Infeasible}
	chosen, kept := f.best()
	if kept {
		p.Status = Satisfied
	}
	p.Best = s.fleet(&chosen, "chosen")
	if kept {
		for _, a := range f.alternatives(&chosen) {
			_, about := difference(&a, &chosen)
			p.Alternatives = append(p.Alternatives, s.fleet(&a, about))
		}
	}
	ideal, _ := s.clairvoyant(chosen.site)
	p.Clairvoyant = s.fleet(&ideal, "clairvoyant")
	p.Clairvoyant.Scaling = Scaling{Scaler: clairvoyant, Min: ideal.set.Min, Max: ideal.set.Max}
	p.Usual = s.usualFleet(chosen.site, "on 80 % CPU")
	if !chosen.site.replica.IsDefault {
		for _, x := range s.sites {
			if x.replica.IsDefault && x.replica.Type == chosen.site.replica.Type {
				p.UsualDefault = s.usualFleet(x, "default, on 80 % CPU")
			}
		}
	}
	p.Notes = s.notes(&chosen)
	p.Summary = summary(&p)
	return p, nil
}

// finding holds the results of the search.
type finding struct {
	*searcher
	kept, missed []attempt // of all sites
	candidates   []Candidate
	hopeless     []attempt // the largest fixed fleets, of sites that keep the limit nowhere
}

// collect simulates the sites, the cheapest clairvoyant first. A site whose clairvoyant costs more than
// what was found, and more than the alternatives will show, is not simulated further.
func (f *finding) collect() {
	type ranked struct {
		x       *site
		numbers []int
		least   float64
	}
	var order []ranked
	for _, x := range f.sites {
		r := ranked{x: x, least: math.Inf(1)}
		if x.safe > 0 {
			var a attempt
			a, r.numbers = f.clairvoyant(x)
			r.least = f.cost(&a)
		}
		order = append(order, r)
	}
	slices.SortStableFunc(order, func(a, b ranked) int { return cmp.Compare(a.least, b.least) })
	cheapest := math.Inf(1)
	for _, r := range order {
		c := candidateOf(r.x)
		switch {
		case r.x.safe == 0:
			f.hopeless = append(f.hopeless, f.try(r.x, autoscaler.Settings{Min: f.q.Max, Max: f.q.Max}, false))
			c.Tried = 1
		case r.least <= mostWorse*cheapest:
			c.LeastCost = r.least
			kept, missed := f.settingsOf(r.x, r.numbers)
			c.Tried = len(kept) + len(missed)
			f.kept, f.missed = append(f.kept, kept...), append(f.missed, missed...)
			for i := range kept {
				cheapest = min(cheapest, f.cost(&kept[i]))
			}
		default:
			c.LeastCost = r.least
		}
		f.candidates = append(f.candidates, c)
	}
}

// mostWorse is the factor over the cheapest fleet up to which a configuration is simulated: beyond it
// is no near alternative.
const mostWorse = 1.5

// settingsOf returns the attempts of a site.
func (f *finding) settingsOf(x *site, numbers []int) (kept, missed []attempt) {
	if f.q.Scaler != Fixed && f.q.Min < f.q.Max {
		kept, missed = f.scaled(x, numbers)
	}
	a, ok := f.fixed(x)
	if ok {
		return append(kept, a), missed
	}
	return kept, append(missed, a)
}

// best returns the cheapest attempt that keeps the limit. Without one it returns the attempt with the
// highest share, and false.
func (f *finding) best() (a attempt, kept bool) {
	if len(f.kept) > 0 {
		return f.trimmed(f.refined(slices.MinFunc(f.kept, func(a, b attempt) int {
			// At equal costs, a fixed number is simpler, and a longer stabilization changes less.
			return cmp.Or(cmp.Compare(f.cost(&a), f.cost(&b)), cmp.Compare(b.set.Min, a.set.Min), cmp.Compare(a.o.changes, b.o.changes))
		}))), true
	}
	return f.trimmed(slices.MaxFunc(slices.Concat(f.missed, f.hopeless), func(a, b attempt) int {
		return cmp.Compare(a.o.good[0], b.o.good[0])
	})), false
}

// trimmed returns an attempt with all its figures, and a largest number of replicas with some spare over
// the peak.
func (f *finding) trimmed(a attempt) attempt {
	if a.set.Min < a.set.Max {
		a.set.Max = min(f.q.Max, max(a.set.Min+1, int(math.Ceil(spare*float64(a.o.peak)))))
	}
	return f.try(a.site, a.set, true)
}

// alternatives returns the nearest attempts by cost that differ from the chosen one, one of each kind
// of difference.
func (f *finding) alternatives(chosen *attempt) (list []attempt) {
	nearest := map[string]attempt{}
	consider := func(a attempt) {
		kind, _ := difference(&a, chosen)
		if before, has := nearest[kind]; kind != "" && (!has || f.cost(&a) < f.cost(&before)) {
			nearest[kind] = a
		}
	}
	for _, a := range f.kept {
		consider(a)
	}
	near := attempt{}
	for _, a := range f.missed {
		isNearer := near.site == nil || a.o.good[0] > near.o.good[0]
		if f.cost(&a) < f.cost(chosen) && isNearer {
			near = a
		}
	}
	if near.site != nil {
		nearest[missing] = near
	}
	for _, a := range nearest {
		list = append(list, f.trimmed(a))
	}
	distance := func(a *attempt) float64 { return math.Abs(math.Log(f.cost(a) / f.cost(chosen))) }
	slices.SortFunc(list, func(a, b attempt) int {
		return cmp.Or(cmp.Compare(distance(&a), distance(&b)), cmp.Compare(a.site.replica.Type, b.site.replica.Type),
			cmp.Compare(a.site.replica.Configuration, b.site.replica.Configuration))
	})
	return list[:min(mostAlternatives, len(list))]
}

// Kinds of differences between fleets. Another configuration is a kind of its own.
const (
	missing  = "missing"  // it is cheaper and misses the limit
	constant = "constant" // one of both has no autoscaler
	settings = "settings" // the autoscalers differ
)

// difference says in what an attempt differs from the chosen one, with the kind of the difference. Both
// are "" if it does not differ.
func difference(a, chosen *attempt) (kind, text string) {
	isFixed, wasFixed := a.set.Min == a.set.Max, chosen.set.Min == chosen.set.Max
	switch {
	case !a.kept:
		return missing, "misses the limit: " + targetText(a)
	case a.site != chosen.site:
		text = a.site.replica.Configuration + " of " + a.site.replica.Type
		return text, text
	case isFixed && wasFixed:
		return "", ""
	case isFixed:
		return constant, "no autoscaler"
	case wasFixed:
		return constant, "autoscaler: " + targetText(a)
	case down(a) != down(chosen):
		return settings, "scales down after " + words.Duration(down(a))
	case tolerance(a) != tolerance(chosen):
		return settings, fmt.Sprintf("tolerance of %.3g %%", 100*tolerance(a))
	case a.set.Min != chosen.set.Min:
		return settings, words.Count(a.set.Min, "replica") + " at least"
	}
	return "", ""
}

func down(a *attempt) time.Duration {
	if a.set.Behavior == nil {
		return autoscaler.DefaultScaleDown
	}
	return a.set.Behavior.Down.Stabilization
}

func tolerance(a *attempt) float64 {
	if a.set.Behavior == nil {
		return autoscaler.DefaultTolerance
	}
	return a.set.Behavior.Up.Tolerance
}

func targetText(a *attempt) string {
	if a.set.Min == a.set.Max {
		return words.Count(a.set.Min, "replica")
	}
	return words.Digits(float64(a.set.Target)/1000, 4) + " requests/s per replica"
}

// usualFleet returns the fleet of the usual autoscaler on a site; nil without processor times.
func (s *searcher) usualFleet(x *site, about string) *Fleet {
	a, ok := s.usual(x)
	if !ok {
		return nil
	}
	f := s.fleet(&a, about)
	f.Scaling = Scaling{Scaler: cpuScaler, Min: a.set.Min, Max: a.set.Max, Down: autoscaler.DefaultScaleDown.Seconds(), Startup: f.Scaling.Startup}
	return &f
}

func (s *searcher) asked() Asked {
	t := s.q.Traffic
	return Asked{
		Traffic: t.Text, Days: Significant(t.Length().Hours() / 24), Requests: t.Total(), Mean: Significant(t.Mean()), Peak: Significant(t.Peak()),
		Dispersion: Significant(t.Dispersion), Limit: s.q.Limit.Seconds(), Share: s.q.Share, Balancer: s.q.Balancer, Scaler: s.q.Scaler,
		Window: s.q.Window.Seconds(), MinReplicas: s.q.Min, MaxReplicas: s.q.Max, Step: stepSeconds, Seed: s.q.Seed,
	}
}

func candidateOf(x *site) Candidate {
	c := Candidate{
		Type: x.replica.Type, Configuration: x.replica.Configuration, Setup: x.replica.Setup, Price: x.replica.Price,
		Capacity: Significant(x.replica.Capacity), Safe: Significant(x.safe),
	}
	for _, k := range x.replica.Checks {
		c.Checks = append(c.Checks, Check{Load: k.Load, Measured: Significant(k.Measured), Simulated: Significant(k.Simulated)})
	}
	return c
}

// fleet turns an attempt into its public form.
func (s *searcher) fleet(a *attempt, about string) Fleet {
	f := Fleet{
		About: about, Type: a.site.replica.Type, Configuration: a.site.replica.Configuration, Setup: a.site.replica.Setup,
		Hours: Significant(s.hoursPerDay(a)), Within: Significant(a.o.good[0] / a.o.requests), WorstDay: Significant(a.o.worstDay),
		P50: Significant(a.quantile(0.5)), P99: Significant(a.quantile(0.99)),
		Mean: Significant(s.hoursPerDay(a) / 24), Peak: a.o.peak, Changes: Significant(float64(a.o.changes) / s.hours * 24),
	}
	if a.site.replica.Price > 0 {
		f.Cost = Significant(s.cost(a))
	}
	f.Scaling = Scaling{Scaler: Fixed, Min: a.set.Min, Max: a.set.Max, Startup: (time.Duration(a.site.startup) * traffic.Step).Seconds()}
	if a.set.Min < a.set.Max {
		f.Scaling.Scaler, f.Scaling.Target = s.q.Scaler, float64(a.set.Target)/1000
		f.Scaling.Down, f.Scaling.Window = down(a).Seconds(), s.q.Window.Seconds()
		if b := a.set.Behavior; b != nil {
			f.Scaling.Tolerance = b.Up.Tolerance
		}
	}
	return f
}

// quantile returns a quantile of the latency of all requests, by the shares within limits. Beyond the last
// limit it is that limit.
func (a *attempt) quantile(q float64) float64 {
	seconds, good := a.site.seconds[1:], a.o.good[1:]
	value, ok := replica.Quantile(q, seconds, func(limit int) float64 { return good[limit] / a.o.requests })
	if !ok {
		return seconds[len(seconds)-1]
	}
	return value
}

// Significant rounds to five digits. More are noise of the simulation.
func Significant(x float64) float64 {
	const digits = 5
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	scale := math.Pow(10, digits-1-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}
