package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"tuner/lab/landscape/record"
	"tuner/measure"
	"tuner/search"
)

// trialer measures trials, like a campaign's.
type trialer interface {
	Measure(ctx context.Context, trial search.Trial) (measure.Measurement, error)
}

// recordLog stores the records. Each method returns when the record is durable.
type recordLog interface {
	Point(record.Point) error
	Service(record.Service) error
}

const (
	bestPoints = 20 // number of points that are measured again under each limit
	// nearLimit: multiple of a limit up to which points are measured again too, since they may turn
	// out to be within it
	nearLimit        = 1.1
	precise          = 0.01                   // relative standard error of their throughput that is small enough
	leastLaunch      = 3                      // least launches for a meaningful standard error
	serviceWindow    = 400 * time.Millisecond // of a service trial
	referenceWindows = 4                      // windows of the reference point
)

// recorder runs a recording to its end.
type recorder struct {
	options
	space    search.Space
	file     record.File // all records, including those of earlier runs
	log      recordLog
	trialer  trialer
	now      func() time.Time
	messages io.Writer
	base     time.Duration // of earlier runs
	begin    time.Time
	lastRef  time.Duration // last measurement of the reference point; below zero for never
}

func newRecorder(o options, known record.File, log recordLog, t trialer, messages io.Writer) *recorder {
	return &recorder{options: o, space: known.Header.Space, file: known, log: log, trialer: t, now: time.Now, messages: messages,
		base: known.Span(), lastRef: -1}
}

// elapsed returns the recording's time without pauses between its runs.
func (r *recorder) elapsed() time.Duration { return r.base + r.now().Sub(r.begin) }

// record makes the passes, and then measures the best points again.
func (r *recorder) record(ctx context.Context) error {
	r.begin = r.now()
	for pass := 1; pass <= r.passes; pass++ {
		if err := r.pass(ctx, pass); err != nil {
			return err
		}
	}
	for round := 1; round <= r.rounds; round++ {
		vague := r.vague()
		fmt.Fprintf(r.messages, "%v: round %d of at most %d: %d of the best points are not known to 1 %%\n", r.elapsed().Round(time.Second), round, r.rounds, len(vague))
		if len(vague) == 0 {
			break
		}
		random := rand.New(rand.NewPCG(r.seed, uint64(1000+round+len(r.file.Points))))
		if err := r.visits(ctx, vague, 0, random); err != nil {
			return err
		}
	}
	return r.reference(ctx)
}

// spot is a configuration at a load.
type spot struct {
	candidate search.Candidate
	level     float64
}

// pass visits every pool once, in random order, and measures the spots that this pass has not
// measured yet.
func (r *recorder) pass(ctx context.Context, pass int) error {
	done := map[string]bool{}
	for _, p := range r.file.Points {
		if p.Pass == pass && !p.Reference {
			done[record.Key(p.Candidate, p.Level)] = true
		}
	}
	candidates := r.space.Candidates().All()
	var todo []spot
	for _, c := range append([]search.Candidate{{}}, candidates...) {
		for _, level := range r.space.Load.Levels {
			if !done[record.Key(c, level)] {
				todo = append(todo, spot{c, level})
			}
		}
	}
	fmt.Fprintf(r.messages, "%v: pass %d of %d: %d points\n", r.elapsed().Round(time.Second), pass, r.passes, len(todo))
	return r.visits(ctx, todo, pass, rand.New(rand.NewPCG(r.seed, uint64(pass))))
}

// visits measures spots pool by pool, each pool on its own launch. The order is random, except that
// the loads of a configuration follow each other.
func (r *recorder) visits(ctx context.Context, todo []spot, pass int, random *rand.Rand) error {
	var order []string
	pools := map[string][]spot{}
	for _, s := range todo {
		k := s.candidate.PoolKey()
		if pools[k] == nil {
			order = append(order, k)
		}
		pools[k] = append(pools[k], s)
	}
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for i, k := range order {
		if r.lastRef < 0 || r.elapsed()-r.lastRef >= r.options.reference {
			if err := r.reference(ctx); err != nil {
				return err
			}
		}
		fmt.Fprintf(r.messages, "%v: pool %d of %d, %d points: %s\n", r.elapsed().Round(time.Second), i+1, len(order), len(pools[k]), k)
		if err := r.visit(ctx, shuffled(pools[k], random), pass); err != nil {
			return err
		}
	}
	return nil
}

// shuffled orders spots at random by configuration, and the loads of each.
func shuffled(spots []spot, random *rand.Rand) []spot {
	place := map[string]int{}
	for _, i := range random.Perm(len(spots)) {
		if k := spots[i].candidate.Key(); place[k] == 0 {
			place[k] = len(place) + 1
		}
	}
	mixed := slices.Clone(spots)
	random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	slices.SortStableFunc(mixed, func(a, b spot) int { return place[a.candidate.Key()] - place[b.candidate.Key()] })
	return mixed
}

// visit measures spots of one pool on a fresh launch. In a pass it begins with the service times.
func (r *recorder) visit(ctx context.Context, spots []spot, pass int) error {
	fresh := true
	if pass > 0 && !r.hasService(spots[0].candidate, pass) {
		dead, err := r.services(ctx, spots[0].candidate, pass)
		if err != nil {
			return err
		}
		fresh = dead
	}
	windows := r.windows
	if pass == 0 { // many short visits: a disturbance of one also affects its neighbours, and shows in them
		windows = 1
	}
	for _, s := range spots {
		trial := search.Trial{Candidate: s.candidate, Load: r.space.Load.At(s.level), Windows: windows, Window: r.window, Fresh: fresh, Phase: search.PhaseSearch}
		m, err := r.trialer.Measure(ctx, trial)
		if err != nil {
			return err
		}
		if err := r.point(record.NewPoint(record.Trial{Candidate: s.candidate, Pass: pass, At: r.elapsed()}, s.level, m)); err != nil {
			return err
		}
		fresh = false // after a failure that ended the engine, the next trial launches another anyway
	}
	return nil
}

func (r *recorder) point(p record.Point) error {
	if err := r.log.Point(p); err != nil {
		return err
	}
	r.file.Points = append(r.file.Points, p)
	return nil
}

// hasService reports whether a pool's service times were recorded in a pass.
func (r *recorder) hasService(c search.Candidate, pass int) bool {
	return slices.ContainsFunc(r.file.Services, func(s record.Service) bool {
		return s.Pass == pass && s.Candidate.PoolKey() == c.PoolKey()
	})
}

// services measures a pool's service times, alone and with every instance busy, on a fresh launch.
// It reports whether the pool failed.
func (r *recorder) services(ctx context.Context, member search.Candidate, pass int) (failed bool, err error) {
	c, largest, instances := r.roomiest(member)
	var sizes []int
	for size := 1; size < largest; size *= 2 {
		sizes = append(sizes, size)
	}
	sizes = append(sizes, largest)
	for _, concurrency := range slices.Compact([]int{1, instances}) {
		trial := search.Trial{Candidate: c, Load: measure.Load{Concurrency: concurrency, BatchSize: 1}, Windows: len(sizes), Window: serviceWindow,
			Fresh: concurrency == 1, Phase: search.PhaseService, Sizes: sizes}
		m, err := r.trialer.Measure(ctx, trial)
		if err != nil {
			return false, err
		}
		s := record.NewService(record.Trial{Candidate: c, Pass: pass, At: r.elapsed()}, concurrency, sizes, m)
		if err := r.log.Service(s); err != nil {
			return false, err
		}
		r.file.Services = append(r.file.Services, s)
		if m.Failure != nil {
			return true, nil
		}
	}
	return false, nil
}

// roomiest returns the configuration of a candidate's pool with the largest batches and the
// shortest delay. Batches of every size pass through it without waiting.
func (r *recorder) roomiest(member search.Candidate) (c search.Candidate, largest, instances int) {
	facts := r.space.Facts
	c, largest, instances = member, max(facts.BaseMaxBatchSize, 1), max(facts.BaseInstances, 1)
	if v, ok := member.Get(search.KnobInstanceCount); ok {
		instances, _ = v.Int()
	}
	candidates := r.space.Candidates().All()
	best, delay := -1, time.Duration(0)
	for _, other := range candidates {
		if other.PoolKey() != member.PoolKey() {
			continue
		}
		size, wait := max(facts.BaseMaxBatchSize, 1), time.Duration(0)
		if v, ok := other.Get(search.KnobMaxBatchSize); ok {
			size, _ = v.Int()
		}
		if v, ok := other.Get(search.KnobMaxQueueDelay); ok {
			wait, _ = v.Duration()
		}
		if size > best || size == best && wait < delay {
			c, best, delay = other, size, wait
		}
	}
	if best > 0 {
		largest = best
	}
	if !facts.Batching {
		largest = 1
	}
	return c, largest, instances
}

// reference measures the default where it is saturated, which shows the machine's current speed.
func (r *recorder) reference(ctx context.Context) error {
	level := r.space.Load.AtLeast(r.space.Knee(search.Candidate{}))
	trial := search.Trial{Load: r.space.Load.At(level), Windows: referenceWindows, Window: r.window, Fresh: true, Phase: search.PhaseSearch}
	m, err := r.trialer.Measure(ctx, trial)
	if err != nil {
		return err
	}
	p := record.NewPoint(record.Trial{At: r.elapsed()}, level, m)
	p.Reference = true
	r.lastRef = r.elapsed()
	return r.point(p)
}

// truths returns the truths of the points' trials so far.
func (r *recorder) truths() []record.Truth { return record.Truths(r.file, record.NewCourse(r.file)) }

// limits returns the limits for searches of the landscape; none if all points failed.
func limits(truths []record.Truth) []float64 {
	var p99s []float64
	for _, t := range truths {
		if t.Failure == nil {
			p99s = append(p99s, t.P99)
		}
	}
	if len(p99s) == 0 {
		return nil
	}
	tight, middle := record.Limits(p99s)
	return []float64{tight, middle, math.Inf(1)}
}

// vague lists the best points under each limit, and slightly above it, whose mean is not known well
// enough, one for each class.
func (r *recorder) vague() []spot {
	truths := r.truths()
	var list []spot
	seen := map[string]bool{}
	for _, limit := range limits(truths) {
		for _, t := range slices.Concat(record.Best(truths, limit, bestPoints), record.Best(truths, nearLimit*limit, bestPoints)) {
			if !seen[t.Class] && (t.Error > precise || t.Launches < leastLaunch) {
				list = append(list, spot{t.Candidate, t.Level})
			}
			seen[t.Class] = true
		}
	}
	return list
}
