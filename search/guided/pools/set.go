// Package pools knows what of a space the guided search has looked at: which engines and pools there are, which of them were
// opened, what was measured of their cells, and what failed.
//
// It is written by package guided, from the events, and read by prediction and beliefs. It predicts nothing and decides
// nothing. In a space that is too large to be looked at as a whole it holds a part (part.go).
package pools

import (
	"cmp"
	"slices"
	"strings"

	"tuner/ort/provider"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/guided/service"
	"tuner/search/guided/tuning"
	"tuner/search/queuesim"
)

// Pools is what was looked at. It reads the ledger that its owner writes.
type Pools struct {
	space      search.Space
	ledger     *search.Ledger
	candidates *search.Candidates
	held       *footprint.Model
	tuning     tuning.Tuning

	engines []*Engine
	pools   []*Pool
	byKey   map[string]*Pool   // by pool key
	byName  map[string]*Engine // by EngineKey
	isPart  bool               // the pools are a part of the space's, those around the default and what was the best
	home    string             // EngineKey of the last best that was looked around
	largest int                // batch of all pools
	widest  int                // member of each pool that allows the largest batches and waits the least
	base    *Engine            // the default's, or else the one most like it
	twin    search.Candidate   // that is the same as the default; the default itself where none is
	outside Pool               // of a default that is not like any candidate: what was measured of it
}

// New returns the pools of a space, or a part of them, of which nothing is known yet. What they hold in memory is written
// by the owner of the footprint model.
func New(space search.Space, l *search.Ledger, candidates *search.Candidates, held *footprint.Model, n tuning.Tuning) *Pools {
	s := &Pools{space: space, ledger: l, candidates: candidates, held: held, tuning: n, byKey: map[string]*Pool{}, byName: map[string]*Engine{}}
	s.findWidest()
	s.enterSpace()
	s.adoptDefault()
	if p, ok := s.byKey[search.Candidate{}.PoolKey()]; ok {
		s.base = p.engine
	} else if len(s.pools) > 0 {
		s.base = slices.MinFunc(s.pools, func(a, b *Pool) int { return s.distance(a) - s.distance(b) }).engine
	}
	return s
}

// distance counts the engine's settings of a pool that the default has not.
func (s *Pools) distance(p *Pool) int {
	n := 0
	for _, x := range p.settings.Settings() {
		if IsEngineKnob(x.Knob) && !s.isBase(x) {
			n++
		}
	}
	return n
}

// All are the pools, in the space's order as far as they were looked at. The caller must not change the list.
func (s *Pools) All() []*Pool { return s.pools }

// Engines are in the order in which they were met. The caller must not change the list.
func (s *Pools) Engines() []*Engine { return s.engines }

// Outside keeps what was measured of a default that is not like any candidate.
func (s *Pools) Outside() *Pool { return &s.outside }

// ByKey is the pool of a key. The default has one where a pool is the same as the default's.
func (s *Pools) ByKey(key string) (*Pool, bool) {
	p, ok := s.byKey[key]
	return p, ok
}

// Default is the pool that is the same as the default's.
func (s *Pools) Default() (*Pool, bool) { return s.ByKey(search.Candidate{}.PoolKey()) }

// Named is a cell's candidate; the default where that is the same.
func (s *Pools) Named(c Cell) search.Candidate {
	b := c.Batcher()
	if b.Key == s.twin.Key() {
		return search.Candidate{}
	}
	return b.Candidate
}

// InPool is a candidate as its pool has it: the twin in the place of the default.
func (s *Pools) InPool(c search.Candidate) search.Candidate {
	if c.IsDefault() {
		return s.twin
	}
	return c
}

// CellOf is the cell of a configuration at a level, false where its pool is not ready.
func (s *Pools) CellOf(c search.Candidate, level float64) (Cell, bool) {
	p, known := s.byKey[c.PoolKey()]
	if !known || !p.IsReady() {
		return Cell{}, false
	}
	at, found := p.Find(s.InPool(c).Key())
	return Cell{p, Setting{at, level}}, found
}

// ClientBatch is how many inferences a request has.
func (s *Pools) ClientBatch() int { return max(s.space.Load.BatchSize, 1) }

// Sizes are the client batches of a pool's service trial.
func (s *Pools) Sizes(p *Pool) []int { return service.Sizes(s.ClientBatch(), p.maxBatch) }

// LargestSizes are the client batches of a service trial up to the space's largest batch.
func (s *Pools) LargestSizes() []int { return service.Sizes(s.ClientBatch(), s.largest) }

// Widest is the pool's candidate that allows the largest batches and waits the least.
func (s *Pools) Widest(p *Pool) search.Candidate {
	c := s.candidates.Member(p.settings, s.widest)
	if p.hosts && s.byWidth(search.Candidate{}, c) < 0 {
		return search.Candidate{}
	}
	return c
}

// First is the pool's first candidate.
func (s *Pools) First(p *Pool) search.Candidate { return s.candidates.Member(p.settings, 0) }

// enter adds a pool of the space that is not known yet, with its engine.
func (s *Pools) enter(settings search.Candidate) {
	p := s.newPool(settings)
	s.byKey[p.key] = p
	s.pools = append(s.pools, p)
	name := EngineKey(settings)
	e, known := s.byName[name]
	if !known {
		e = &Engine{index: len(s.engines), values: s.engineValues(settings), attempts: s.tuning.Engines.Attempts}
		s.byName[name] = e
		s.engines = append(s.engines, e)
	}
	p.engine = e
	e.pools = append(e.pools, p)
	slices.SortStableFunc(e.pools, func(a, b *Pool) int { return a.instances - b.instances })
}

func (s *Pools) newPool(settings search.Candidate) *Pool {
	serving := s.space.Serving(settings)
	p := &Pool{
		key:       settings.PoolKey(),
		settings:  settings,
		instances: serving.Instances,
		maxBatch:  s.largest,
		memory:    s.held.Pool(settings),
	}
	if cmp.Or(s.space.Value(settings, search.KnobExecutionProvider), provider.CPU) == provider.CPU {
		p.threads = cmp.Or(serving.Threads, s.space.Facts.Cores) // ONNX Runtime takes all cores unless it is told
	}
	return p
}

// findWidest finds the largest batch of the space's batchers, which are the same in each pool, and of those with that the
// first that waits the least and prefers the fewest sizes.
func (s *Pools) findWidest() {
	var widest search.Candidate
	for i := range s.candidates.Batchers() {
		if c := s.candidates.Member(search.Candidate{}, i); i == 0 || s.byWidth(c, widest) < 0 {
			s.widest, widest = i, c
		}
	}
	s.largest = max(s.Queue(widest).MaxBatch, 1)
}

// byWidth orders candidates by their batchers: large batches first, then short delays, then few preferred sizes.
func (s *Pools) byWidth(a, b search.Candidate) int {
	x, y := s.Queue(a), s.Queue(b)
	return cmp.Or(cmp.Compare(y.MaxBatch, x.MaxBatch), cmp.Compare(x.Delay, y.Delay), cmp.Compare(len(x.Preferred), len(y.Preferred)))
}

// Queue is a candidate's batcher as the simulation takes it. A batch of one never waits, and preferred sizes that no batch
// reaches do nothing.
func (s *Pools) Queue(c search.Candidate) queuesim.Batcher {
	x := s.space.Serving(c)
	b := queuesim.Batcher{MaxBatch: x.MaxBatch, Instances: x.Instances, Dynamic: x.Dynamic && x.MaxBatch > 1}
	if b.Dynamic {
		b.Preferred = slices.DeleteFunc(x.Preferred, func(n int) bool { return n > b.MaxBatch })
		b.Delay = x.Delay
	}
	return b
}

// EngineKey is the part of a pool's key that is not its number of instances.
func EngineKey(c search.Candidate) string {
	var parts []string
	for _, x := range c.Settings() {
		if IsEngineKnob(x.Knob) {
			parts = append(parts, x.Knob+"="+string(x.Value))
		}
	}
	return strings.Join(parts, " ")
}

// IsEngineKnob reports whether a knob is a pool's, instances apart. One that is not known is.
func IsEngineKnob(name string) bool {
	scope, known := search.KnobScope(name)
	return name != search.KnobInstanceCount && (!known || scope != search.ScopeBatcher)
}

func (s *Pools) engineValues(c search.Candidate) []search.Value {
	var values []search.Value
	for _, k := range s.space.Knobs {
		if IsEngineKnob(k.Name) {
			v, _ := c.Get(k.Name)
			values = append(values, v)
		}
	}
	return values
}

// isBase reports whether a setting says what the default configuration has anyway.
func (s *Pools) isBase(x search.Setting) bool {
	facts := s.space.Facts
	if x.Knob == search.KnobRuntime && len(facts.Runtimes) > 0 {
		return string(x.Value) == facts.Runtimes[0].Name
	}
	base, known := facts.Base[x.Knob]
	return known && base == x.Value
}

// adoptDefault finds the pool that is the same as the default's, and the candidate that is the same as the default; where
// only the latter is missing, the default becomes a member of the pool.
func (s *Pools) adoptDefault() {
	isOther := func(x search.Setting) bool { return !s.isBase(x) }
	for _, p := range s.pools {
		if slices.ContainsFunc(p.settings.Settings(), isOther) {
			continue
		}
		s.byKey[search.Candidate{}.PoolKey()] = p
		for i := range s.candidates.Batchers() {
			if c := s.candidates.Member(p.settings, i); !slices.ContainsFunc(c.Settings(), isOther) {
				s.twin = c
				return
			}
		}
		p.hosts = true
		p.maxBatch = max(p.maxBatch, s.Queue(search.Candidate{}).MaxBatch)
		return
	}
}

// Open makes the batchers of a pool when its service times are known, and makes them again when they have changed. It
// reports whether they are known.
func (s *Pools) Open(p *Pool) bool {
	if !p.engine.IsOpen() || p.instances > 1 && !p.crowded.IsKnown() {
		return false
	}
	p.batchers = nil
	s.Fill(p)
	s.makeBatchers(p)
	return true
}

// makeBatchers makes those of the pool's members that have none.
func (s *Pools) makeBatchers(p *Pool) {
	for _, c := range p.members[len(p.batchers):] {
		p.batchers = append(p.batchers, Batcher{Candidate: c, Key: c.Key(), Queue: s.Queue(c)})
	}
	for i := range p.batchers {
		p.batchers[i].Below = p.below(p.batchers[i].Queue)
	}
}
