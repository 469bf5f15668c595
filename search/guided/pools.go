package guided

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/posterior"
	"tuner/search/queuesim"
)

// engine is what serves the model: all settings of a pool but the number of instances.
type engine struct {
	index  int
	values []search.Value // by the space's engine knobs, "" where one is left alone
	pools  []*pool        // ascending by instances
	alone  service        // with one request in flight
	opened *pool          // where that was measured
	launch mean           // of its processes
	zones  []zone         // that fail in all its pools
}

// isOpen reports whether the engine's service times are known.
func (e *engine) isOpen() bool { return len(e.alone.sizes) > 0 }

// attempts is the number of pools that may fail before an engine counts as failed.
const attempts = 2

// door is the pool on which the engine is opened, the one with the fewest instances that has not failed; nil when it has failed.
func (e *engine) door() *pool {
	var door *pool
	failed := 0
	for _, p := range e.pools {
		switch {
		case p.failure != "":
			failed++
		case door == nil:
			door = p
		}
	}
	if !e.isOpen() && failed >= attempts {
		return nil
	}
	return door
}

// isTried reports whether the engine is open, or a pool of it has failed.
func (e *engine) isTried() bool {
	return e.isOpen() || slices.ContainsFunc(e.pools, func(p *pool) bool { return p.failure != "" })
}

// pool is one engine process: an engine and a number of instances. Its batchers and loads are its cells.
type pool struct {
	key       string
	settings  search.Candidate // what its candidates have in common
	engine    *engine
	instances int
	threads   int                // of one instance, where it computes on the cores; 0 unknown
	maxBatch  int                // largest of its candidates, at least 1
	members   []search.Candidate // that are looked at; none until its service times are known
	isMember  map[string]bool    // by key; in a large pool, where not all are looked at
	hosts     bool               // the default is one of its candidates, beside the space's
	crowded   service            // with a request in flight for each instance
	failure   string             // why it is out
	stillborn int                // launches that failed
	zones     []zone
	held      *footprint.Pool // what its processes hold
	tracks    []*track
	company   company // of its instances, while it is not ready

	// Of a ready pool:
	curve    queuesim.Curve
	outline  outline
	batchers []batcher
	results  map[setting]queuesim.Result
	places   map[setting]*posterior.Place
}

// isReady reports whether all is known that the simulation of the pool's queue needs.
func (p *pool) isReady() bool { return p.failure == "" && p.batchers != nil }

// service is what is known of the pool's service times.
func (p *pool) service() *service {
	if p.isReady() && p.instances > 1 {
		return &p.crowded
	}
	return &p.engine.alone
}

// batcher is a candidate within its pool.
type batcher struct {
	candidate search.Candidate
	key       string
	queue     queuesim.Batcher
	below     int // the next smaller batch of the pool, where batchers of both differ in nothing else; 0: none
}

// setting is a batcher at a load: a cell within its pool.
type setting struct {
	batcher int
	level   float64
}

// service is what service trials told: the time of a batch by its size.
type service struct {
	sizes    []int     // ascending
	times    []float64 // s
	spreads  []float64 // standard deviation of the log of a batch's time
	overhead float64   // s per request of the smallest size, outside of instance and queue
	asked    int       // the largest that a trial asked for
	trials   int
	isOld    bool // an earlier campaign's
}

// enter adds a service trial. Where a size was measured before, the shorter time counts: what disturbs a window only makes it longer.
func (s *service) enter(e search.Event) {
	s.trials++
	s.asked = max(s.asked, slices.Max(e.Trial.Sizes))
	for i, w := range e.Measurement.Windows {
		if i >= len(e.Trial.Sizes) {
			break
		}
		size := e.Trial.Sizes[i]
		t, spread, overhead, ok := serviceTime(w, size)
		if !ok {
			continue
		}
		at, known := slices.BinarySearch(s.sizes, size)
		switch {
		case !known:
			s.sizes = slices.Insert(s.sizes, at, size)
			s.times = slices.Insert(s.times, at, t)
			s.spreads = slices.Insert(s.spreads, at, spread)
		case t < s.times[at]:
			s.times[at], s.spreads[at] = t, spread
		}
		if at == 0 {
			s.overhead = overhead
		}
	}
}

// last is the largest size that was measured, 0 where none was.
func (s *service) last() int {
	if len(s.sizes) == 0 {
		return 0
	}
	return s.sizes[len(s.sizes)-1]
}

// serviceTime is what one window of a service trial tells of batches of a size: seconds in the instance, the spread of their
// logarithm, and the seconds that a request takes elsewhere. Without the server's statistics all of the latency counts as service.
func serviceTime(w measure.Window, size int) (t, spread, overhead float64, ok bool) {
	m := measure.Measurement{Windows: []measure.Window{w}}
	latency, ok := m.Estimate(measure.LatencyAvg)
	if !ok || latency.Value <= 0 {
		return 0, 0, 0, false
	}
	ratio := m.Std().Seconds() / latency.Value
	spread = math.Sqrt(math.Log1p(ratio * ratio))
	s := w.Server
	if s.Requests == 0 || s.ComputeInfer <= 0 {
		return latency.Value, spread, 0, true
	}
	perRequest := func(d time.Duration) float64 { return d.Seconds() / float64(s.Requests) }
	infer := perRequest(s.ComputeInfer)
	for _, b := range s.Batches {
		if b.Size == size && b.Executions > 0 {
			infer = b.ComputeInfer.Seconds() / float64(b.Executions)
		}
	}
	t = infer + perRequest(s.ComputeInput) + perRequest(s.ComputeOutput)
	return t, spread, max(latency.Value-t-perRequest(s.Queue), 0), true
}

// What a curve of service times keeps when nothing disturbed its windows, with room for noise.
const (
	falling = 0.95 // a larger batch takes no shorter
	growing = 2.4  // nor one of twice the size more than twice as long
)

// suspects lists the sizes whose times cannot both be right with a neighbour's.
func (s *service) suspects() []int {
	var sizes []int
	for i := 1; i < len(s.sizes); i++ {
		growth, most := s.times[i]/s.times[i-1], growing*float64(s.sizes[i])/float64(2*s.sizes[i-1])
		if growth >= falling && growth <= max(most, growing/2) {
			continue
		}
		for _, size := range s.sizes[i-1 : i+1] {
			if !slices.Contains(sizes, size) {
				sizes = append(sizes, size)
			}
		}
	}
	return sizes
}

// leastSpread is the least standard deviation of the log of a batch's time: no real server has less, and without any the simulation falls
// into an arbitrary cycle (queuesim.Curve).
const leastSpread = 0.03

// curve is the service curve of one instance.
func (s *service) curve() queuesim.Curve {
	c := queuesim.Curve{Sizes: s.sizes, Alone: s.times, Overhead: s.overhead}
	spreads := slices.Sorted(slices.Values(s.spreads))
	c.Spread = max(spreads[len(spreads)/2], leastSpread)
	return c
}

// sizes are the client batches of a service trial: from the requests' own in powers of two to the largest batch.
func (g *Guided) sizes(maxBatch int) []int {
	var sizes []int
	for size := g.clientBatch(); size < maxBatch; size *= 2 {
		sizes = append(sizes, size)
	}
	return append(sizes, max(maxBatch, g.clientBatch()))
}

func (g *Guided) clientBatch() int { return max(g.settings.Space.Load.BatchSize, 1) }

// enterPool adds a pool of the space that is not known yet, with its engine.
func (g *Guided) enterPool(settings search.Candidate) {
	p := g.newPool(settings)
	g.byKey[p.key] = p
	g.pools = append(g.pools, p)
	name := engineKey(settings)
	e, known := g.byName[name]
	if !known {
		e = &engine{index: len(g.engines), values: g.engineValues(settings)}
		g.byName[name] = e
		g.engines = append(g.engines, e)
	}
	p.engine = e
	e.pools = append(e.pools, p)
	slices.SortStableFunc(e.pools, func(a, b *pool) int { return a.instances - b.instances })
}

func (g *Guided) newPool(settings search.Candidate) *pool {
	p := &pool{
		key:       settings.PoolKey(),
		settings:  settings,
		instances: g.settings.Space.Facts.Instances(settings),
		maxBatch:  g.largest,
		held:      g.held.Pool(settings),
	}
	if cmp.Or(g.settings.Space.Value(settings, search.KnobExecutionProvider), "cpu") == "cpu" {
		p.threads = cmp.Or(g.settings.Space.Serving(settings).Threads, g.settings.Space.Facts.Cores) // ONNX Runtime takes all cores unless it is told
	}
	return p
}

// sizeUp finds the largest batch of the space's batchers, which are the same in each pool, and of those with that the first that waits
// the least and prefers the fewest sizes.
func (g *Guided) sizeUp() {
	var widest search.Candidate
	for i := range g.candidates.Batchers() {
		if c := g.candidates.Member(search.Candidate{}, i); i == 0 || g.byWidth(c, widest) < 0 {
			g.widest, widest = i, c
		}
	}
	g.largest = max(g.queue(widest).MaxBatch, 1)
}

// byWidth orders candidates by their batchers: large batches first, then short delays, then few preferred sizes.
func (g *Guided) byWidth(a, b search.Candidate) int {
	x, y := g.queue(a), g.queue(b)
	return cmp.Or(cmp.Compare(y.MaxBatch, x.MaxBatch), cmp.Compare(x.Delay, y.Delay), cmp.Compare(len(x.Preferred), len(y.Preferred)))
}

// queue is a candidate's batcher as the simulation takes it. A batch of one never waits, and preferred sizes that no batch
// reaches do nothing.
func (g *Guided) queue(c search.Candidate) queuesim.Batcher {
	s := g.settings.Space.Serving(c)
	b := queuesim.Batcher{MaxBatch: s.MaxBatch, Instances: s.Instances, Dynamic: s.Dynamic && s.MaxBatch > 1}
	if b.Dynamic {
		b.Preferred = slices.DeleteFunc(s.Preferred, func(n int) bool { return n > b.MaxBatch })
		b.Delay = s.Delay
	}
	return b
}

// engineKey is the part of a pool's key that is not its number of instances.
func engineKey(c search.Candidate) string {
	var parts []string
	for _, s := range c.Settings() {
		if isEngineKnob(s.Knob) {
			parts = append(parts, s.Knob+"="+string(s.Value))
		}
	}
	return strings.Join(parts, " ")
}

// isEngineKnob reports whether a knob is a pool's, instances apart. One that is not known is.
func isEngineKnob(name string) bool {
	scope, known := search.KnobScope(name)
	return name != search.KnobInstanceCount && (!known || scope != search.ScopeBatcher)
}

func (g *Guided) engineValues(c search.Candidate) []search.Value {
	var values []search.Value
	for _, k := range g.settings.Space.Knobs {
		if isEngineKnob(k.Name) {
			v, _ := c.Get(k.Name)
			values = append(values, v)
		}
	}
	return values
}

// isBase reports whether a setting says what the default configuration has anyway.
func (g *Guided) isBase(s search.Setting) bool {
	facts := g.settings.Space.Facts
	if s.Knob == search.KnobRuntime && len(facts.Runtimes) > 0 {
		return string(s.Value) == facts.Runtimes[0].Name
	}
	base, known := facts.Base[s.Knob]
	return known && base == s.Value
}

// adoptDefault finds the pool that is the same as the default's, and the candidate that is the same as the default; where only
// the latter is missing, the default becomes a member of the pool.
func (g *Guided) adoptDefault() {
	isOther := func(s search.Setting) bool { return !g.isBase(s) }
	for _, p := range g.pools {
		if slices.ContainsFunc(p.settings.Settings(), isOther) {
			continue
		}
		g.byKey[search.Candidate{}.PoolKey()] = p
		for i := range g.candidates.Batchers() {
			if c := g.candidates.Member(p.settings, i); !slices.ContainsFunc(c.Settings(), isOther) {
				g.twin = c
				return
			}
		}
		p.hosts = true
		p.maxBatch = max(p.maxBatch, g.queue(search.Candidate{}).MaxBatch)
		return
	}
}

// prepare makes a pool ready when its service times are known, and anew when they have changed.
func (g *Guided) prepare(p *pool) {
	crowded := p.instances > 1
	if !p.engine.isOpen() || crowded && len(p.crowded.sizes) == 0 {
		return
	}
	p.curve = p.engine.alone.curve()
	if crowded {
		alone := p.curve
		p.curve = p.crowded.curve()
		p.curve.Overhead, p.curve.Spread = alone.Overhead, alone.Spread
		p.curve.Crowded = p.curve.Alone
		p.curve.Alone = make([]float64, len(p.curve.Sizes))
		for i, size := range p.curve.Sizes {
			p.curve.Alone[i] = alone.Time(size, 1, 1)
		}
	}
	g.predictAnew(p)
	p.batchers, p.places = nil, map[setting]*posterior.Place{}
	g.fill(p)
	g.prepareBatchers(p)
}

// predictAnew forgets what was predicted of a pool with another path to the server, or other service times.
func (g *Guided) predictAnew(p *pool) {
	p.curve.Path, p.curve.Cores, p.curve.Threads = g.path, g.settings.Space.Facts.Cores, p.threads
	p.outline = g.measuredOutline(p)
	p.results = map[setting]queuesim.Result{}
}

// prepareBatchers makes those of the pool's members that have none.
func (g *Guided) prepareBatchers(p *pool) {
	for _, c := range p.members[len(p.batchers):] {
		b := batcher{candidate: c, key: c.Key(), queue: g.queue(c)}
		p.batchers = append(p.batchers, b)
	}
	for i := range p.batchers {
		p.batchers[i].below = p.below(p.batchers[i].queue)
	}
}

// below is the largest batch of a batcher that waits as long as another but has a smaller batch, joins requests as that does, or has nothing to join;
// 0 where there is none.
func (p *pool) below(b queuesim.Batcher) int {
	below := 0
	for _, other := range p.batchers {
		q := other.queue
		isAlike := q.Delay == b.Delay && (q.Dynamic == b.Dynamic || q.MaxBatch <= 1)
		if q.MaxBatch < b.MaxBatch && isAlike && len(q.Preferred) == 0 && len(b.Preferred) == 0 {
			below = max(below, q.MaxBatch)
		}
	}
	return below
}

// track returns what was measured of a cell, nil while nothing was.
func (p *pool) track(key string, level float64) *track {
	i := slices.IndexFunc(p.tracks, func(t *track) bool { return t.key == key && t.level == level })
	if i < 0 {
		return nil
	}
	return p.tracks[i]
}

// find returns the index of a candidate among the pool's batchers.
func (p *pool) find(key string) (int, bool) {
	i := slices.IndexFunc(p.batchers, func(b batcher) bool { return b.key == key })
	return i, i >= 0
}
