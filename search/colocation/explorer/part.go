package explorer

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/colocation"
	"tuner/search/footprint"
	"tuner/search/guided/pools"
	"tuner/search/guided/predict"
	"tuner/search/guided/tuning"
	"tuner/search/packing"
	"tuner/search/queuesim"
	"tuner/search/standings"
)

// part is one of the models: its engine processes, their service times as far as they were measured, and its
// options.
type part struct {
	name      string
	at        int          // place in the list of models
	load      measure.Load // at scale 1
	limits    []colocation.Limit
	space     search.Space // of the model alone
	isFixed   bool         // it has no knobs
	cores     int
	pools     *pools.Pools
	predictor *predict.Predictor

	options []option
	index   map[string]int // of an option, by its candidate's key
	unseen  int            // options that are not considered
}

// option is a configuration of the model.
type option struct {
	pool      *pools.Pool
	candidate search.Candidate
	knobs     []int
	// isMeasured means that the search has the measured curve of its pool
	isMeasured bool
}

// newPart returns a model without service times.
func newPart(s search.Settings, at int, n tuning.Tuning) *part {
	p := s.Space.Parts[at]
	own := s
	own.Space = search.Movable(p.Space)
	own.Goal = search.Goal{}
	x := &part{name: p.Model, at: at, load: s.Space.Load.At(1).Of(p.Model), space: own.Space, isFixed: len(p.Space.Knobs) == 0, cores: s.Space.Facts.Cores}
	for _, c := range s.Goal.Constraints {
		model, metric := c.Metric.Split()
		_, isQuantile := metric.Quantile()
		if model != p.Model || c.Max == nil || !isQuantile && metric != measure.LatencyAvg {
			continue
		}
		x.limits = append(x.limits, colocation.Limit{Metric: metric, Seconds: *c.Max})
	}
	x.pools = pools.New(own.Space, standings.NewLedger(own.Goal), own.Space.Candidates(), footprint.New(own.Space), n)
	x.predictor = predict.New(own, x.pools, n)
	return x
}

// tightest returns the least limit on a latency, in s; +Inf without one.
func (x *part) tightest() float64 {
	least := math.Inf(1)
	for _, l := range x.limits {
		least = min(least, l.Seconds)
	}
	return least
}

// named returns a candidate as the joint one has it: without settings if the model has no knobs.
func (x *part) named(c search.Candidate) search.Candidate {
	if x.isFixed {
		return search.Candidate{}
	}
	return c
}

// own returns the model's configuration in a joint candidate, as the model's options have it. The
// default configuration may equal an option.
func (x *part) own(c search.Candidate) search.Candidate {
	own := c.Of(x.name)
	if x.isFixed || c.IsDefault() {
		return x.pools.InPool(own)
	}
	return own
}

// isDefault reports whether an option equals the default configuration.
func (x *part) isDefault(c search.Candidate) bool {
	return c.Key() == x.pools.InPool(search.Candidate{}).Key()
}

// curve returns the service curve of a pool: the measured one, or else the expected one with the
// standard deviation of its times' logarithm. It returns false without either.
func (x *part) curve(p *pools.Pool) (c queuesim.ServiceCurve, doubt float64, ok bool) {
	if p.IsReady() {
		c = x.predictor.Curve(p)
		c.Threads = p.Threads()
		return c, 0, true
	}
	f, ok := x.predictor.Forecast(p.Engine())
	if !ok {
		return c, 0, false
	}
	c, doubt = f.Curve, f.Deviation
	if k := p.Instances(); k > 1 {
		contention := x.predictor.Contention(p)
		useful := float64(k)
		if p.Threads() > 0 && x.cores > 0 {
			useful = min(useful, max(1, float64(x.cores)/float64(p.Threads())))
		}
		slow := max(1, float64(k)/useful*math.Exp(-contention.Mean))
		c.Crowded = make([]float64, len(c.Alone))
		for i, seconds := range c.Alone {
			c.Crowded[i] = slow * seconds
		}
		doubt = math.Hypot(doubt, math.Sqrt(contention.Variance))
	}
	c.Threads = p.Threads()
	return c, doubt, true
}

// mostOptions is the largest number of a model's options. Each takes a simulation at 15 loads, 4 ms.
const mostOptions = 400

// list makes the options from all pools whose times are known or expected. If they are too many, the
// pools with the highest throughputs count.
func (x *part) list() {
	type ranked struct {
		pool *pools.Pool
		most float64
	}
	var list []ranked
	for _, p := range x.pools.All() {
		if c, _, ok := x.curve(p); ok && !p.HasFailed() {
			list = append(list, ranked{p, packing.Capacity(x.pools.Queue(x.pools.Widest(p)), c, x.load.BatchSize)})
		}
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(b.most, a.most) })
	x.options, x.index, x.unseen = nil, map[string]int{}, x.pools.Unseen()
	for _, r := range list {
		x.pools.Fill(r.pool)
		members := slices.DeleteFunc(slices.Clone(r.pool.Members()), search.Candidate.IsDefault)
		if len(x.options) > 0 && len(x.options)+len(members) > mostOptions {
			x.unseen += len(members)
			continue
		}
		for _, c := range members {
			x.index[c.Key()] = len(x.options)
			x.options = append(x.options, option{r.pool, c, x.positions(c), r.pool.IsReady()})
		}
	}
}

// positions returns the places of a candidate's values in the lists of its knobs; −1 for a value that is
// not listed.
func (x *part) positions(c search.Candidate) []int {
	var list []int
	for _, k := range x.space.Knobs {
		v, _ := c.Get(k.Name)
		list = append(list, slices.Index(k.Values, v))
	}
	return list
}

// made returns an option for the search, with the expected time of its service trials.
func (x *part) made(i int, each float64) colocation.Option {
	o := x.options[i]
	curve, doubt, _ := x.curve(o.pool)
	made := colocation.Option{
		Name: o.candidate.Key(), Pool: o.pool.Key(), Knobs: o.knobs, Batcher: x.pools.Queue(o.candidate), Curve: curve, Doubt: doubt,
	}
	if trials := x.missing(o.pool); trials > 0 {
		made.Opening = seconds(float64(trials*len(x.pools.Sizes(o.pool))*x.pools.WindowsPerSize()) * each)
	}
	return made
}

// missing returns the number of service trials that a pool needs before its first load.
func (x *part) missing(p *pools.Pool) int {
	n := 0
	if !p.Engine().IsOpen() {
		n++
	}
	if p.Instances() > 1 && !p.Together().IsKnown() {
		n++
	}
	return n
}
