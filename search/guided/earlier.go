package guided

import (
	"fmt"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/queuesim"
)

// What earlier campaigns' figures are worth here, as standard deviations of logarithms.
const (
	paceSD    = 0.10 // of the factor between then and now on the same machine, which all figures have in common
	agedSD    = 0.05 // of what a cell's figures then and now differ by beyond that
	factorSD  = 1.5  // of the factor between the service times of two machines
	thereSD   = 0.15 // of what a value of an engine knob does on another machine beyond what it does here
	strangeSD = 0.10 // of an engine's service times on another machine beyond that
)

// past is what earlier campaigns tell.
type past struct {
	campaigns []*earlier
	since     map[*service]*earlier // whose service times these are, where they are not this campaign's
	witnesses []witness             // of other machines
	habits    []float64             // by model: the global part of its residuals on other machines
	path      float64               // s, of a request to the server on this machine (Guided.path); 0 unknown
}

// earlier is one of those campaigns.
type earlier struct {
	from   string
	isSame bool               // its figures are data
	pools  []*pool            // that it measured, of this search, and what is outside of them
	tracks map[*pool][]*track // of each of them; only looked up
	seen   []estimates        // by model, of that campaign alone
	paces  []pace             // by model
	curves int                // service curves that are used
	points int                // cells that are used
}

// pace is by how much the logarithm of a metric differs now from then, in all cells alike.
type pace struct {
	mean, variance float64
	again          int // cells that tell
}

// recall takes over what earlier campaigns measured. Each is told to a search of its own with the same pools, and what that then
// knows is handed on: from this machine as data, from others as a prior. What failed is tried again when it is worth a trial.
func (g *Guided) recall(candidates *search.Candidates) {
	g.past = past{since: map[*service]*earlier{}, habits: make([]float64, len(g.models))}
	bare := g.settings
	bare.Earlier = nil
	others := 0
	for _, e := range g.settings.Earlier {
		then := New(bare, search.NewLedger(bare.Goal), candidates)
		for _, event := range e.Events {
			if adopted, ok := adopt(bare.Space, event); ok {
				then.Tell(adopted)
			}
		}
		c := &earlier{from: e.From, isSame: e.Same, tracks: map[*pool][]*track{}, paces: make([]pace, len(g.models))}
		g.past.campaigns = append(g.past.campaigns, c)
		if e.Same {
			g.inherit(c, then)
		} else {
			others++
			g.consult(c, others, then)
		}
	}
	for k := range g.past.habits {
		g.past.habits[k] /= float64(max(others, 1))
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

// longAgo is when an earlier campaign's service times were measured: the drift of this one knows nothing of it.
var longAgo = math.Inf(-1)

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
	for k := range then.models {
		c.seen = append(c.seen, then.estimate(k))
	}
	if then.learnPath(); then.path > 0 {
		g.past.path, g.path = then.path, then.path
	}
	for _, p := range g.pools {
		g.prepare(p)
	}
	g.foresee()
	g.foreseeCompany()
}

// inheritCurve takes over service times where there are none.
func (g *Guided) inheritCurve(c *earlier, mine *service, then service) {
	if len(mine.sizes) > 0 || len(then.sizes) == 0 {
		return
	}
	*mine, g.past.since[mine] = then, c
	mine.at = longAgo
	c.curves++
}

// tellOutside keeps the figures of a default that no pool stands for: they are measured in every campaign, and tell the pace.
func (g *Guided) tellOutside(e search.Event) {
	if e.Measurement.Failure == nil && e.Trial.Phase != search.PhaseService {
		g.enter(&g.outside, e.Trial.Candidate, e)
	}
}

// consult takes over what a campaign learned on another machine that may hold here: how engines' service times compare, and how far
// predictions are off everywhere.
func (g *Guided) consult(c *earlier, machine int, then *Guided) {
	for _, e := range then.engines {
		if e.isOpen() {
			mine, _ := g.poolOf(e.pools[0].settings)
			g.past.witnesses = append(g.past.witnesses, witness{mine.engine, e.alone.curve(), machine})
			c.curves++
		}
	}
	then.learn()
	for k, m := range then.models {
		if m.isPredicted && !m.isDropped {
			g.past.habits[k] += m.process.mean
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

// offset is what is known of a metric's residuals in a pool whatever was measured in this campaign: what they are on other machines,
// and by how much this one has changed since the pool's service times were measured.
func (g *Guided) offset(p *pool, k int) float64 {
	if m := g.models[k]; !m.isPredicted || m.isDropped {
		return 0
	}
	x := g.past.habits[k]
	if c := g.past.since[p.service()]; c != nil {
		x += c.paces[k].mean
	}
	return x
}

// keepPace estimates how a metric has changed since each earlier campaign, from the cells that were measured then and now.
func (g *Guided) keepPace(k int, seen estimates) {
	for _, c := range g.past.campaigns {
		sum, precision, again := 0.0, 1/(paceSD*paceSD), 0
		for _, p := range c.pools {
			for _, then := range c.tracks[p] {
				now, isKnown := seen.columns[p.track(then.key, then.level)]
				before, wasKnown := c.seen[k].columns[then]
				if isKnown && wasKnown {
					w := 1 / (seen.errors[now][now] + c.seen[k].errors[before][before] + agedSD*agedSD)
					sum, precision, again = sum+w*(seen.means[now]-c.seen[k].means[before]), precision+w, again+1
				}
			}
		}
		c.paces[k] = pace{sum / precision, 1 / precision, again}
	}
}

// remembered lists the cells of a pool that earlier campaigns on this machine measured. They are beside what was measured of the same
// cells since.
func (g *Guided) remembered(p *pool) []*track {
	var list []*track
	for _, c := range g.past.campaigns {
		list = append(list, c.tracks[p]...)
	}
	return list
}

// remember adds to the estimates of this campaign those of the cells that earlier ones measured on this machine, at today's pace, about
// which all cells of a campaign err alike.
func (g *Guided) remember(k int, seen estimates) estimates {
	for _, c := range g.past.campaigns {
		var columns []int // in that campaign's estimates
		first := len(seen.means)
		for _, p := range c.pools {
			for _, t := range c.tracks[p] {
				if column, known := c.seen[k].columns[t]; known {
					seen.columns[t] = first + len(columns)
					seen.means = append(seen.means, c.seen[k].means[column]+c.paces[k].mean)
					columns = append(columns, column)
				}
			}
		}
		seen.errors = widen(seen.errors, len(seen.means))
		for i, a := range columns {
			for j, b := range columns {
				seen.errors[first+i][first+j] = c.seen[k].errors[a][b] + c.paces[k].variance
			}
			seen.errors[first+i][first+i] += agedSD * agedSD
		}
	}
	return seen
}

// widen is a covariance with further rows and columns of zeros.
func widen(errors [][]float64, size int) [][]float64 {
	wide := make([][]float64, size)
	for i := range wide {
		wide[i] = make([]float64, size)
		if i < len(errors) {
			copy(wide[i], errors[i])
		}
	}
	return wide
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
		for k, m := range g.models {
			if p := c.paces[k]; m.isRate() && p.again > 0 {
				mean, half := m.direction()*p.mean, 1.96*math.Sqrt(p.variance)
				r.Pace = &measure.Estimate{Value: math.Exp(mean), Lo: math.Exp(mean - half), Hi: math.Exp(mean + half)}
			}
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
