package guided

import (
	"fmt"
	"slices"
	"time"

	"tuner/internal/words"
	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/pools"
	"tuner/search/standings"
)

// past holds the data of earlier campaigns.
type past struct {
	campaigns []*earlier
	path      float64 // s, of a request to the server on this machine (predict.Predictor); 0 unknown
}

// earlier is one earlier campaign.
type earlier struct {
	from   string
	isSame bool                             // its figures are data
	cells  map[*pools.Pool][]*pools.History // by this search's pools, and those outside them
	pools  []*pools.Pool                    // keys of cells, in order
	curves int                              // number of used service curves
	points int                              // number of used cells
}

// recall takes over the measurements of earlier campaigns. A separate search with the same pools
// learns each campaign, and its knowledge is copied. It counts as data from this machine, and as a
// prior from others. A failed trial is repeated if it is worth its time.
func (g *Guided) recall(candidates *search.Candidates) {
	bare := g.settings
	bare.Earlier = nil
	machines := 0
	for _, e := range g.settings.Earlier {
		then := New(bare, standings.NewLedger(bare.Goal), candidates)
		for _, event := range e.Events {
			if adopted, ok := adopt(bare.Space, event); ok {
				then.Tell(adopted)
			}
		}
		c := &earlier{from: e.From, isSame: e.Same, cells: map[*pools.Pool][]*pools.History{}}
		g.past.campaigns = append(g.past.campaigns, c)
		if e.Same {
			g.inherit(c, then)
		} else {
			machines++
			g.consult(c, machines, then)
		}
	}
}

// adopt converts an earlier campaign's event to a space; false if it failed, or if the space has no
// such configuration or load.
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

// inherit takes over service times, memory and cells of a campaign on this machine.
func (g *Guided) inherit(c *earlier, then *Guided) {
	for _, p := range then.pools.All() {
		mine, _ := g.poolOf(p.Settings())
		c.inheritTimes(mine, p)
		mine.Memory().Inherit(p.Memory())
		if p.IsMeasured() {
			then.pools.Fill(p)
		}
		isMember := func(h *pools.History) bool {
			return slices.ContainsFunc(p.Members(), func(m search.Candidate) bool { return m.Key() == h.Key })
		}
		cells := slices.DeleteFunc(slices.Clone(p.Histories()), func(h *pools.History) bool { return !isMember(h) })
		if len(cells) > 0 {
			if g.pools.IsLarge() {
				g.pools.AddMembers(mine, slices.Values(p.Members()))
			}
			c.pools, c.cells[mine] = append(c.pools, mine), cells
			c.points += len(cells)
		}
	}
	outside := g.pools.Outside()
	c.pools, c.cells[outside] = append(c.pools, outside), then.pools.Outside().Histories()
	for _, e := range then.beliefs.Trials() {
		g.beliefs.Inherit(before(e, len(g.past.campaigns)))
	}
	then.updatePath()
	if path := then.predictor.Path(); path > 0 {
		g.past.path = path
		g.predictor.SetPath(path)
	}
	for _, p := range g.pools.All() {
		g.predictor.Refresh(p)
	}
	g.predictor.ForecastEngines()
	g.predictor.ForecastContention()
}

// inheritTimes takes over a pool's service times if there are none.
func (c *earlier) inheritTimes(mine, then *pools.Pool) {
	if mine.Engine().Alone().Inherit(*then.Engine().Alone()) {
		c.curves++
	}
	if mine.Together().Inherit(*then.Together()) {
		c.curves++
	}
}

// before converts an event from the given number of campaigns ago, so that it shares no process
// with this campaign or another.
func before(e search.Event, campaigns int) search.Event {
	// apart is more than the launches of a campaign, and more than the seconds of the course of the
	// machine's speed. Anything beyond has the same effect.
	const apart = 1_000_000
	by := time.Duration(campaigns*apart) * time.Second
	e.Elapsed -= by
	e.Measurement.Launch = -(campaigns*apart + e.Measurement.Launch)
	e.Measurement.Windows = slices.Clone(e.Measurement.Windows)
	for i := range e.Measurement.Windows {
		e.Measurement.Windows[i].Start -= by
	}
	return e
}

// consult takes over the part of a campaign on another machine that may hold here: the comparison
// of engines' service times.
func (g *Guided) consult(c *earlier, machine int, then *Guided) {
	for _, e := range then.pools.Engines() {
		if e.IsOpen() {
			mine, _ := g.poolOf(e.Pools()[0].Settings())
			g.predictor.Observe(mine.Engine(), e.Alone().Curve(), machine)
			c.curves++
		}
	}
}

// pace returns the ratio of the present to the earlier throughput, from the cells that both
// campaigns measured; nil without any.
func (g *Guided) pace(c *earlier) *measure.Estimate {
	g.learn()
	var pairs [][2]*pools.History
	for _, p := range c.pools {
		for _, then := range c.cells[p] {
			if now := p.History(then.Key, then.Level); now != nil {
				pairs = append(pairs, [2]*pools.History{now, then})
			}
		}
	}
	return g.beliefs.Pace(pairs)
}

// reuse describes the use of an earlier campaign.
type reuse struct {
	From   string
	Same   bool // on this machine
	Curves int  // number of service curves
	Points int  // number of configurations at loads
	// Pace is the ratio of the present to the earlier throughput, with its 95 % interval; nil if
	// nothing was measured again yet.
	Pace *measure.Estimate
}

// reuses describes the use of each earlier campaign.
func (g *Guided) reuses() []reuse {
	var list []reuse
	for _, c := range g.past.campaigns {
		r := reuse{From: c.from, Same: c.isSame, Curves: c.curves, Points: c.points}
		if c.isSame {
			r.Pace = g.pace(c)
		}
		list = append(list, r)
	}
	return list
}

func (r reuse) sentence() string {
	switch {
	case r.Curves == 0 && r.Points == 0:
		return fmt.Sprintf("Nothing that the campaign in %s measured could be used.", r.From)
	case !r.Same:
		return fmt.Sprintf("Known from the campaign in %s, on another machine: %s, for forecasts.", r.From, words.Count(r.Curves, "service curve"))
	}
	text := fmt.Sprintf("Known from the campaign in %s: %s and %s", r.From, words.Count(r.Curves, "service curve"), words.Count(r.Points, "point"))
	if r.Pace == nil {
		return text + "."
	}
	return fmt.Sprintf("%s; the machine now serves %.2f × as much as then (%.2f to %.2f).", text, r.Pace.Value, r.Pace.Lo, r.Pace.Hi)
}
