// Package pools holds the guided search's view of a space: its engines and pools, their states, the
// measurements of their cells, and failures.
//
// Package guided writes it from the events. Prediction and beliefs read it. It predicts nothing and
// decides nothing. Of a space that is too large it holds a part (part.go).
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
	"tuner/search/standings"
)

// Pools holds the considered part of a space. It reads the ledger of its owner.
type Pools struct {
	space      search.Space
	ledger     *standings.Ledger
	candidates *search.Candidates
	held       *footprint.Model
	tuning     tuning.Tuning
	anchors    service.Anchors // measured kinds of requests

	engines []*Engine
	pools   []*Pool
	byKey   map[string]*Pool   // by pool key
	byName  map[string]*Engine // by EngineKey
	isPart  bool               // only a part of the space's pools is considered, around the default and former bests
	home    string             // EngineKey of the last best with considered neighbours
	largest int                // largest batch of all pools
	widest  int                // index of each pool's member with the largest batches and the shortest delay
	base    *Engine            // the default's, or else the most similar one
	twin    search.Candidate   // candidate that equals the default; the default itself without one
	outside Pool               // measurements of a default that equals no candidate
}

// New returns the pools of a space, or a part of them, without measurements. The owner of the
// footprint model records their memory.
func New(space search.Space, l *standings.Ledger, candidates *search.Candidates, held *footprint.Model, n tuning.Tuning) *Pools {
	s := &Pools{space: space, ledger: l, candidates: candidates, held: held, tuning: n, anchors: service.NewAnchors(space.Facts.Mix), byKey: map[string]*Pool{}, byName: map[string]*Engine{}}
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

// distance counts the engine's settings of a pool that differ from the default's.
func (s *Pools) distance(p *Pool) int {
	n := 0
	for _, x := range p.settings.Settings() {
		if IsEngineKnob(x.Knob) && !s.isBase(x) {
			n++
		}
	}
	return n
}

// All returns the considered pools in the space's order. The caller must not change the list.
func (s *Pools) All() []*Pool { return s.pools }

// Engines returns the engines in the order in which they were added. The caller must not change the
// list.
func (s *Pools) Engines() []*Engine { return s.engines }

// Outside holds the measurements of a default that equals no candidate.
func (s *Pools) Outside() *Pool { return &s.outside }

// ByKey returns the pool of a key. The default has one if a pool equals the default's.
func (s *Pools) ByKey(key string) (*Pool, bool) {
	p, ok := s.byKey[key]
	return p, ok
}

// Default returns the pool that equals the default's.
func (s *Pools) Default() (*Pool, bool) { return s.ByKey(search.Candidate{}.PoolKey()) }

// Named returns a cell's candidate, or the default if they are equal.
func (s *Pools) Named(c Cell) search.Candidate {
	b := c.Batcher()
	if b.Key == s.twin.Key() {
		return search.Candidate{}
	}
	return b.Candidate
}

// InPool returns a candidate in its pool's form: the twin instead of the default.
func (s *Pools) InPool(c search.Candidate) search.Candidate {
	if c.IsDefault() {
		return s.twin
	}
	return c
}

// CellOf returns the cell of a configuration at a level; false if its pool is not ready.
func (s *Pools) CellOf(c search.Candidate, level float64) (Cell, bool) {
	p, known := s.byKey[c.PoolKey()]
	if !known || !p.IsReady() {
		return Cell{}, false
	}
	at, found := p.Find(s.InPool(c).Key())
	return Cell{p, Setting{at, level}}, found
}

// ClientBatch returns the number of inferences per request.
func (s *Pools) ClientBatch() int { return max(s.space.Load.BatchSize, 1) }

// Sizes returns the client batches of a pool's service trial.
func (s *Pools) Sizes(p *Pool) []int { return s.anchors.Sizes(s.ClientBatch(), p.maxBatch) }

// LargestSizes returns the client batches of a service trial up to the space's largest batch.
func (s *Pools) LargestSizes() []int { return s.anchors.Sizes(s.ClientBatch(), s.largest) }

// Kinds returns the kinds of requests that service trials measure; nil for one shape.
func (s *Pools) Kinds() []int { return s.anchors.Kinds }

// WindowsPerSize returns the number of windows in which a service trial measures a size: one for each
// of the kinds.
func (s *Pools) WindowsPerSize() int { return max(len(s.anchors.Kinds), 1) }

// Widest returns the pool's candidate with the largest batches and the shortest delay.
func (s *Pools) Widest(p *Pool) search.Candidate {
	c := s.candidates.Member(p.settings, s.widest)
	if p.hosts && s.byWidth(search.Candidate{}, c) < 0 {
		return search.Candidate{}
	}
	return c
}

// First returns the pool's first candidate.
func (s *Pools) First(p *Pool) search.Candidate { return s.candidates.Member(p.settings, 0) }

// enter adds an unknown pool of the space, with its engine.
func (s *Pools) enter(settings search.Candidate) {
	p := s.newPool(settings)
	s.byKey[p.key] = p
	s.pools = append(s.pools, p)
	name := EngineKey(settings)
	e, known := s.byName[name]
	if !known {
		e = &Engine{index: len(s.engines), values: s.engineValues(settings), attempts: s.tuning.Engines.Attempts, alone: service.Of(s.anchors)}
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
		crowded:   service.Of(s.anchors),
	}
	if cmp.Or(s.space.Value(settings, search.KnobExecutionProvider), provider.CPU) == provider.CPU {
		p.threads = cmp.Or(serving.Threads, s.space.Facts.Cores) // ONNX Runtime takes all cores by default
	}
	return p
}

// findWidest finds the largest batch of the space's batchers, which are the same in each pool.
// Among those with that batch it takes the first with the shortest delay and the fewest preferred
// sizes.
func (s *Pools) findWidest() {
	var widest search.Candidate
	for i := range s.candidates.Batchers() {
		if c := s.candidates.Member(search.Candidate{}, i); i == 0 || s.byWidth(c, widest) < 0 {
			s.widest, widest = i, c
		}
	}
	s.largest = max(s.Queue(widest).MaxBatch, 1)
}

// byWidth orders candidates by their batchers: large batches first, then short delays, then few
// preferred sizes.
func (s *Pools) byWidth(a, b search.Candidate) int {
	x, y := s.Queue(a), s.Queue(b)
	return cmp.Or(cmp.Compare(y.MaxBatch, x.MaxBatch), cmp.Compare(x.Delay, y.Delay), cmp.Compare(len(x.Preferred), len(y.Preferred)))
}

// Queue returns a candidate's batcher for the simulation. A batch of one never waits, and preferred
// sizes that no batch reaches have no effect.
func (s *Pools) Queue(c search.Candidate) queuesim.Batcher {
	x := s.space.Serving(c)
	b := queuesim.Batcher{MaxBatch: x.MaxBatch, Instances: x.Instances, Dynamic: x.Dynamic && x.MaxBatch > 1}
	if b.Dynamic {
		b.Preferred = slices.DeleteFunc(x.Preferred, func(n int) bool { return n > b.MaxBatch })
		b.Delay = x.Delay
	}
	return b
}

// EngineKey returns the part of a pool's key without its number of instances.
func EngineKey(c search.Candidate) string {
	var parts []string
	for _, x := range c.Settings() {
		if IsEngineKnob(x.Knob) {
			parts = append(parts, x.Knob+"="+string(x.Value))
		}
	}
	return strings.Join(parts, " ")
}

// IsEngineKnob reports whether a knob belongs to a pool, except the instances. An unknown one does.
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

// isBase reports whether a setting equals the default configuration's value.
func (s *Pools) isBase(x search.Setting) bool {
	facts := s.space.Facts
	if x.Knob == search.KnobRuntime && len(facts.Runtimes) > 0 {
		return string(x.Value) == facts.Runtimes[0].Name
	}
	base, known := facts.Base[x.Knob]
	return known && base == x.Value
}

// adoptDefault finds the pool that equals the default's, and the candidate that equals the default.
// If only the latter is missing, the default becomes a member of the pool.
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

// Open makes the batchers of a pool if its service times are known, and makes them again if these
// have changed. It reports whether they are known.
func (s *Pools) Open(p *Pool) bool {
	if !p.engine.IsOpen() || p.instances > 1 && !p.crowded.IsKnown() {
		return false
	}
	p.batchers = nil
	s.Fill(p)
	s.makeBatchers(p)
	return true
}

// makeBatchers makes the batchers of the pool's members that have none.
func (s *Pools) makeBatchers(p *Pool) {
	for _, c := range p.members[len(p.batchers):] {
		p.batchers = append(p.batchers, Batcher{Candidate: c, Key: c.Key(), Queue: s.Queue(c), Padding: s.space.Padding(c)})
	}
	for i := range p.batchers {
		p.batchers[i].Below = p.below(p.batchers[i])
	}
}
