package guided

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/queuesim"
)

// What the curves of other machines are worth here, as standard deviations of logarithms.
const (
	factorSD  = 1.5  // of the factor between the service times of two machines
	thereSD   = 0.15 // of what a value of an engine knob does on another machine beyond what it does here
	strangeSD = 0.10 // of an engine's service times on another machine beyond that
)

// past is what earlier campaigns tell.
type past struct {
	campaigns []*earlier
	witnesses []witness      // of other machines
	trials    []search.Event // of cells on this machine, before this campaign's start
	path      float64        // s, of a request to the server on this machine (Guided.path); 0 unknown
}

// longAgo is how long before this campaign an earlier one is taken to have been: the machine's speed has nothing left in common with it.
// What it has more or less of it now is learned as its slow course is.
const longAgo = 1000 * time.Hour

// earlier is one of those campaigns.
type earlier struct {
	from   string
	isSame bool               // its figures are data
	tracks map[*pool][]*track // by this search's pools, and what is outside of them
	pools  []*pool            // of these, in order
	curves int                // service curves that are used
	points int                // cells that are used
}

// recall takes over what earlier campaigns measured. Each is told to a search of its own with the same pools, and what that then
// knows is handed on: from this machine as data, from others as a prior. What failed is tried again when it is worth a trial.
func (g *Guided) recall(candidates *search.Candidates) {
	bare := g.settings
	bare.Earlier = nil
	machines := 0
	for _, e := range g.settings.Earlier {
		then := New(bare, search.NewLedger(bare.Goal), candidates)
		for _, event := range e.Events {
			if adopted, ok := adopt(bare.Space, event); ok {
				then.Tell(adopted)
			}
		}
		c := &earlier{from: e.From, isSame: e.Same, tracks: map[*pool][]*track{}}
		g.past.campaigns = append(g.past.campaigns, c)
		if e.Same {
			g.inherit(c, then)
		} else {
			machines++
			g.consult(c, machines, then)
		}
	}
}

// adopt is an earlier campaign's event in terms of a space; false where it failed, or the space has no such configuration or load.
func adopt(space search.Space, e search.Event) (search.Event, bool) {
	load := e.Trial.Load
	isOfAxis := load.BatchSize == space.Load.BatchSize && (load.RequestRate > 0) == space.Load.Rate
	if e.Measurement.Failure != nil || e.Trial.Phase != search.PhaseService && !isOfAxis {
		return e, false
	}
	var ok bool
	e.Trial.Candidate, ok = space.Adopt(e.Trial.Candidate)
	return e, ok
}

// inherit takes over service times, memory and cells that a campaign measured on this machine.
func (g *Guided) inherit(c *earlier, then *Guided) {
	for _, p := range then.pools {
		mine, _ := g.poolOf(p.settings)
		g.inheritCurve(c, &mine.engine.alone, p.engine.alone)
		g.inheritCurve(c, &mine.crowded, p.crowded)
		mine.held.Inherit(p.held)
		if len(p.tracks) > 0 {
			then.fill(p)
		}
		tracks := slices.DeleteFunc(slices.Clone(p.tracks), func(t *track) bool {
			return !slices.ContainsFunc(p.members, func(m search.Candidate) bool { return m.Key() == t.key })
		})
		if len(tracks) > 0 {
			if g.isLarge() {
				g.join(mine, slices.Values(p.members))
			}
			c.pools, c.tracks[mine] = append(c.pools, mine), tracks
			c.points += len(tracks)
		}
	}
	c.pools, c.tracks[&g.outside] = append(c.pools, &g.outside), then.outside.tracks
	for _, e := range then.entered {
		g.past.trials = append(g.past.trials, before(e, len(g.past.campaigns)))
	}
	then.learnPath()
	if then.path > 0 {
		g.past.path, g.path = then.path, then.path
	}
	for _, p := range g.pools {
		g.prepare(p)
	}
	g.foresee()
	g.foreseeCompany()
}

// before is an event of so many campaigns ago, on no process of this one's or another's.
func before(e search.Event, campaigns int) search.Event {
	const mostLaunches = 1_000_000 // of a campaign
	by := time.Duration(campaigns) * longAgo
	e.Elapsed -= by
	e.Measurement.Launch = -(campaigns*mostLaunches + e.Measurement.Launch)
	e.Measurement.Windows = slices.Clone(e.Measurement.Windows)
	for i := range e.Measurement.Windows {
		e.Measurement.Windows[i].Start -= by
	}
	return e
}

// inheritCurve takes over service times where there are none.
func (g *Guided) inheritCurve(c *earlier, mine *service, then service) {
	if len(mine.sizes) > 0 || len(then.sizes) == 0 {
		return
	}
	*mine, mine.isOld = then, true
	c.curves++
}

// tellOutside keeps the figures of a default that no pool stands for: they are measured in every campaign, and tell the pace.
func (g *Guided) tellOutside(e search.Event) {
	if e.Measurement.Failure == nil && e.Trial.Phase != search.PhaseService {
		g.enter(&g.outside, e.Trial.Candidate, e)
	}
}

// consult takes over what a campaign learned on another machine that may hold here: how engines' service times compare.
func (g *Guided) consult(c *earlier, machine int, then *Guided) {
	for _, e := range then.engines {
		if e.isOpen() {
			mine, _ := g.poolOf(e.pools[0].settings)
			g.past.witnesses = append(g.past.witnesses, witness{mine.engine, e.alone.curve(), machine})
			c.curves++
		}
	}
}

// witness is a known service curve.
type witness struct {
	engine  *engine
	curve   queuesim.Curve
	machine int // that it was measured on: 0 this one, others from 1
}

// witnesses lists the service curves that forecasts are made from, those of this machine first. Others tell nothing without one of
// these to compare with.
func (g *Guided) witnesses() []witness {
	var list []witness
	for _, e := range g.engines {
		if e.isOpen() {
			list = append(list, witness{engine: e, curve: e.alone.curve()})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return append(list, g.past.witnesses...)
}

// kinship is the covariance of two witnesses' log service times. Those of another machine are what they are here times a factor that
// is common to all of them, one of each value of a knob, and one of each engine.
func (a witness) kinship(b witness) float64 {
	k := kinship(a.engine, b.engine)
	if a.machine != b.machine || a.machine == 0 {
		return k
	}
	k += factorSD * factorSD
	for i, v := range a.engine.values {
		if v == b.engine.values[i] {
			k += thereSD * thereSD
		}
	}
	if a.engine == b.engine {
		k += strangeSD * strangeSD
	}
	return k
}

// pace is the throughput of now by that of then, from the cells that both measured, nil without any. Both campaigns saw some minutes
// of the machine's slow course.
func (g *Guided) pace(c *earlier) *measure.Estimate {
	g.learn()
	v := g.known.View(measure.Throughput, true)
	sum, precision := 0.0, 0.0
	for _, p := range c.pools {
		for _, before := range c.tracks[p] {
			t := p.track(before.key, before.level)
			if t == nil {
				continue
			}
			a, isNow := t.measurement.Estimate(measure.Throughput)
			b, wasThen := before.measurement.Estimate(measure.Throughput)
			if isNow && wasThen && a.Value > 0 && b.Value > 0 {
				w := 1 / (v.TrialVariance(t.seconds())/float64(t.trials) + v.TrialVariance(before.seconds())/float64(before.trials))
				sum, precision = sum+w*math.Log(a.Value/b.Value), precision+w
			}
		}
	}
	if precision == 0 {
		return nil
	}
	pace := posterior.Normal{Mean: sum / precision, Deviation: math.Sqrt(1/precision + 2*v.SpeedVariance())}.Estimate()
	return &pace
}

// Reuse is what a search knows from an earlier campaign.
type Reuse struct {
	From   string
	Same   bool // on this machine
	Curves int  // service curves
	Points int  // configurations at loads
	// Pace is the factor on the throughput of then, with its 95 % interval; nil where nothing was measured again yet.
	Pace *measure.Estimate
}

// reuses says what came of each earlier campaign.
func (g *Guided) reuses() []Reuse {
	var list []Reuse
	for _, c := range g.past.campaigns {
		r := Reuse{From: c.from, Same: c.isSame, Curves: c.curves, Points: c.points}
		if c.isSame {
			r.Pace = g.pace(c)
		}
		list = append(list, r)
	}
	return list
}

func (r Reuse) sentence() string {
	switch {
	case r.Curves == 0 && r.Points == 0:
		return fmt.Sprintf("Nothing that the campaign in %s measured could be used.", r.From)
	case !r.Same:
		return fmt.Sprintf("Known from the campaign in %s, on another machine: %s, for forecasts.", r.From, counted(r.Curves, "service curve"))
	}
	text := fmt.Sprintf("Known from the campaign in %s: %s and %s", r.From, counted(r.Curves, "service curve"), counted(r.Points, "point"))
	if r.Pace == nil {
		return text + "."
	}
	return fmt.Sprintf("%s; the machine serves %.2f × what it served then (%.2f to %.2f).", text, r.Pace.Value, r.Pace.Lo, r.Pace.Hi)
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
