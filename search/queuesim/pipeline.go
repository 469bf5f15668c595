package queuesim

import (
	"math"

	"tuner/measure"
)

// Stage is one of the models that a pipeline calls for each of its requests.
type Stage struct {
	Batcher Batcher
	// Curve has the times of its batches while nothing else computes. Its Threads are the cores that each
	// instance asks for. Crowded, Overhead, Path and Cores are not read.
	Curve ServiceCurve
	// After are the stages whose answers it needs, by their indices, which are below its own. Without any it
	// gets the pipeline's request.
	After []int
}

// mostArrivals bounds an open loop on a pipeline, in multiples of the requests that it counts and leaves out.
// A stage that is a hundred times too slow would otherwise cost a hundred times the requests of one that is
// not. Unlike those on a model alone, requests that come too late to be counted matter: they take cores from
// the stages behind the first. With 4 they do so up to four times a pipeline's capacity.
const mostArrivals = 4

// Pipeline predicts the result of a load on a pipeline whose stages share some cores. A request of it is a
// request to each stage, once the stages before it have answered. The stages have queues, batchers and
// instances of their own. While all of them together ask for more cores than there are, they have the same
// share of what they ask for (processor sharing; Kleinrock, Queueing Systems 2, 1976, chapter 4).
//
// overhead is the time of a request outside of its stages, in s. busy has the mean number of busy instances
// of each stage. The result's latencies are of the pipeline's requests, and MeanBatch is not known. It is
// zero for requests that a stage refuses.
func Pipeline(stages []Stage, cores int, load measure.Load, overhead float64, o Options) (result Result, busy []float64) {
	return new(Line).Simulate(stages, cores, load, overhead, o)
}

// Line simulates pipelines one after the other in the same memory. The zero value is ready. It is for one
// goroutine.
type Line struct {
	stages   []Stage
	lanes    []*lane
	next     [][]int // stages that need a stage's answer
	cores    float64
	overhead float64

	now    float64
	due    fifo[arrival]
	closed bool
	source lane // arrivals of an open loop
	rows   int
	sent   []float64 // s, by request
	needs  []int     // answers that a stage still waits for, by request and stage
	left   []int     // stages that have not answered, by request
	tally  tally
}

// Simulate is Pipeline with reused memory.
func (p *Line) Simulate(stages []Stage, cores int, load measure.Load, overhead float64, o Options) (Result, []float64) {
	if !p.begin(stages, cores, load, overhead, o) {
		return Result{}, nil
	}
	for !p.tally.isComplete(p.now) && p.step() {
	}
	result := p.tally.result(p.now, o.Within)
	busy := make([]float64, len(p.lanes))
	for i, l := range p.lanes {
		if p.now > p.tally.begin {
			busy[i] = l.tally.busy / (p.now - p.tally.begin)
		}
	}
	return result, busy
}

// begin makes the line ready for a load. It returns false if a stage refuses the requests.
func (p *Line) begin(stages []Stage, cores int, load measure.Load, overhead float64, o Options) bool {
	p.stages, p.cores, p.overhead, p.rows = stages, float64(max(cores, 1)), overhead, max(load.BatchSize, 1)
	p.now, p.closed = 0, load.Concurrency > 0
	p.due.reset()
	p.sent, p.needs, p.left = p.sent[:0], p.needs[:0], p.left[:0]
	p.next = make([][]int, len(stages))
	for len(p.lanes) < len(stages) {
		p.lanes = append(p.lanes, new(lane))
	}
	p.lanes = p.lanes[:len(stages)]
	for i, s := range stages {
		c := s.Curve
		c.Crowded, c.Overhead, c.Path, c.Kinds, c.Cores = nil, 0, 0, nil, cores
		p.lanes[i].reset(s.Batcher, c, o.Seed+uint64(i))
		p.lanes[i].tally.reset(0, math.MaxInt)
		if s.Batcher.refuses(p.rows) {
			return false
		}
		for _, before := range s.After {
			p.next[before] = append(p.next[before], i)
		}
	}
	want := o.Requests
	if want < 1 {
		want = defaultRequests
	}
	p.tally.reset(warmUp(want, load.Concurrency), want)
	if p.closed {
		p.due.push(arrival{0, load.Concurrency, p.rows})
		return len(stages) > 0
	}
	p.source.reset(Batcher{}, ServiceCurve{}, o.Seed+uint64(len(stages)))
	p.source.rate, p.source.schedule = load.RequestRate, o.Arrivals
	p.source.upcoming = mostArrivals * (p.tally.skip + want)
	for _, l := range p.lanes {
		p.source.upcoming += l.inBatches(p.rows)
	}
	p.due.push(arrival{p.source.following(), 1, p.rows})
	return len(stages) > 0 && load.RequestRate > 0
}

// step makes the next event happen. It returns false after the last one.
func (p *Line) step() bool {
	at, what, from, i := math.Inf(1), nothing, -1, 0
	for k, l := range p.lanes {
		if t, kind, index := l.next(); t < at {
			at, what, from, i = t, kind, k, index
		}
	}
	if p.due.len() > 0 && p.due.front().at < at {
		at, what = p.due.front().at, sending
	}
	if what == nothing {
		return false
	}
	for _, l := range p.lanes {
		l.advance(at)
	}
	p.now = at
	switch what {
	case sending:
		p.send()
	case completion:
		p.complete(from, i)
	case delayOver:
		p.lanes[from].batcher.pump(at)
		p.lanes[from].dispatch()
	}
	p.pace()
	return true
}

// pace recomputes the ends of all executions.
func (p *Line) pace() {
	asked := 0.0
	for _, l := range p.lanes {
		asked += float64(len(l.running) * l.curve.Threads)
	}
	slow := max(1, asked/p.cores)
	for _, l := range p.lanes {
		l.slow(slow, len(l.running))
	}
}

// send gives requests that are due to the first stages.
func (p *Line) send() {
	a := p.due.pop()
	for range a.requests {
		request := len(p.sent)
		p.sent, p.left = append(p.sent, p.now), append(p.left, len(p.stages))
		for _, s := range p.stages {
			p.needs = append(p.needs, len(s.After))
		}
		for i, s := range p.stages {
			if len(s.After) == 0 {
				p.call(i, request)
			}
		}
	}
	if p.source.upcoming > 0 && !p.closed {
		p.source.upcoming--
		p.source.now = p.now
		p.due.push(arrival{p.source.following(), 1, p.rows})
	}
}

// call gives a stage the request that belongs to one of the pipeline.
func (p *Line) call(stage, of int) {
	l := p.lanes[stage]
	l.arrive(request{sent: p.now, at: p.now, rows: p.rows, of: of})
	l.dispatch()
}

// complete ends an execution of a stage, and passes its answers on.
func (p *Line) complete(stage, i int) {
	l := p.lanes[stage]
	e := l.finish(i)
	l.dispatch()
	answered := 0
	for _, r := range l.batcher.requests[e.first:e.end] {
		for _, next := range p.next[stage] {
			at := r.of*len(p.stages) + next
			if p.needs[at]--; p.needs[at] == 0 {
				p.call(next, r.of)
			}
		}
		if p.left[r.of]--; p.left[r.of] == 0 {
			p.count(r.of)
			answered++
		}
	}
	if p.closed && answered > 0 {
		p.due.push(arrival{p.now + p.overhead, answered, p.rows})
	}
}

// count counts a request of the pipeline that is answered now.
func (p *Line) count(of int) {
	t := &p.tally
	t.done++
	if !t.counting {
		if t.counting, t.begin = t.done >= t.skip, p.now; t.counting {
			for _, l := range p.lanes {
				l.tally.counting = true
			}
		}
		return
	}
	latency := p.now - p.sent[of] + p.overhead
	t.latencies = append(t.latencies, latency)
	t.latency += latency
	t.rows += p.rows
	t.executions++
}
