package stagewise

import (
	"cmp"
	"math"
	"slices"

	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/guided/pools"
	"tuner/search/guided/predict"
	"tuner/search/guided/tuning"
	"tuner/search/packing"
	"tuner/search/queuesim"
	"tuner/search/standings"
)

// stage is one of the stages: its engine processes, and their service times as far as they are known.
type stage struct {
	name      string
	isFixed   bool  // it has no knobs
	after     []int // stages whose answers it needs
	pools     *pools.Pools
	predictor *predict.Predictor
}

// option is a configuration of a stage.
type option struct {
	pool      *pools.Pool
	candidate search.Candidate
	queue     queuesim.Batcher
	curve     queuesim.ServiceCurve
	doubt     float64 // standard deviation of the logarithm of its times: 0 for measured ones
	capacity  float64 // requests/s of its instances, with a core for each of their threads
	cost      float64 // seconds of a core per request in full batches
	lone      float64 // s, a batch of one request
}

// newStage returns a stage without service times.
func newStage(s search.Settings, at int, n tuning.Tuning) *stage {
	p := s.Space.Parts[at]
	own := s
	own.Goal = search.Goal{}
	own.Space = search.Movable(p.Space)
	own.Space.Load = search.LoadAxis{Levels: []float64{1}, BatchSize: s.Space.Load.BatchSize}
	x := &stage{name: p.Model, isFixed: len(p.Space.Knobs) == 0}
	for i, other := range s.Space.Parts {
		if i != at && slices.Contains(p.Space.Facts.After, other.Model) {
			x.after = append(x.after, i)
		}
	}
	x.pools = pools.New(own.Space, standings.NewLedger(own.Goal), own.Space.Candidates(), footprint.New(own.Space), n)
	x.predictor = predict.New(own, x.pools, n)
	return x
}

// own returns the stage's configuration in a candidate, as its options have it.
func (s *stage) own(c search.Candidate) search.Candidate {
	own := c.Of(s.name)
	if s.isFixed || own.IsDefault() {
		return s.pools.InPool(own)
	}
	return own
}

// option returns a configuration with its times; false if they are neither known nor expected.
func (s *stage) option(pool *pools.Pool, c search.Candidate, client, cores int) (option, bool) {
	f, ok := s.predictor.Forecast(pool.Engine())
	if !ok || pool.HasFailed() {
		return option{}, false
	}
	o := option{pool: pool, candidate: c, queue: s.pools.Queue(c), curve: f.Curve, doubt: f.Deviation}
	o.curve.Threads = pool.Threads()
	full := max(o.queue.MaxBatch, client)
	if !o.queue.Dynamic {
		full = client
	}
	rows := float64(client)
	o.capacity = packing.Capacity(o.queue, o.curve, client)
	if threads := o.curve.Threads; threads > 0 {
		useful := float64(max(o.queue.Instances, 1))
		o.capacity *= min(1, math.Max(1, float64(cores)/float64(threads))/useful)
		o.cost = float64(threads) * o.curve.Time(full, 1, 1) * rows / float64(full)
	}
	o.lone = o.curve.Time(client, 1, 1)
	return o, true
}

// options lists the stage's configurations whose times are known or expected. Of too many, those with the
// highest capacity and those with the least cost take part.
func (s *stage) options(client, cores, most int) []option {
	var list []option
	for _, pool := range s.pools.All() {
		if pool.HasFailed() {
			continue
		}
		s.pools.Fill(pool)
		for _, c := range pool.Members() {
			if c.IsDefault() {
				c = s.pools.InPool(c)
			}
			if o, ok := s.option(pool, c, client, cores); ok {
				list = append(list, o)
			}
		}
	}
	if len(list) <= most {
		return list
	}
	byCapacity := slices.SortedStableFunc(slices.Values(list), func(a, b option) int { return cmp.Compare(b.capacity, a.capacity) })
	byCost := slices.SortedStableFunc(slices.Values(list), func(a, b option) int { return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(b.capacity, a.capacity)) })
	var kept []option
	add := func(o option) {
		if len(kept) < most && !slices.ContainsFunc(kept, func(k option) bool { return k.candidate.Key() == o.candidate.Key() }) {
			kept = append(kept, o)
		}
	}
	for i := range list {
		add(byCapacity[i])
		add(byCost[i])
	}
	return kept
}

// joined returns the candidate of the stages' configurations. Where all equal the default's, it is the
// default.
func (x *Stagewise) joined(own []search.Candidate) search.Candidate {
	isDefault := true
	var settings []search.Setting
	for i, s := range x.stages {
		isDefault = isDefault && own[i].Key() == s.pools.InPool(search.Candidate{}).Key()
		if s.isFixed {
			continue
		}
		for _, set := range own[i].Settings() {
			settings = append(settings, search.Setting{Knob: search.JoinKnob(s.name, set.Knob), Value: set.Value})
		}
	}
	if isDefault {
		return search.Candidate{}
	}
	return search.NewCandidate(settings...)
}
