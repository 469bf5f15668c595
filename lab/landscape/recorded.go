package landscape

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tuner/lab/landscape/record"
	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
)

// Load reads a recorded landscape.
func Load(path string) (*Landscape, error) {
	file, err := record.Load(path)
	if err != nil {
		return nil, err
	}
	l, err := FromRecord(file)
	if err != nil {
		return nil, fmt.Errorf("cannot use landscape %q: %w", path, err)
	}
	return l, nil
}

// FromRecord makes a landscape from a recording. Replays draw its visits without the drift of their
// time. The truth of a point is the mean over the launches of its class, on log scale.
func FromRecord(f record.File) (*Landscape, error) {
	l := newLandscape(f.Header.Name, f.Header.Space)
	l.Recorded, l.window = true, f.Header.Window.Seconds()
	course := record.NewCourse(f)
	l.trace = trace{course, f.Span()}
	l.addPools(f, course)
	l.addCosts(f)
	visits := map[string][][]window{} // by class
	for _, t := range record.Truths(f, course) {
		p := Point{Candidate: t.Candidate, Level: t.Level, Throughput: t.Throughput, P99: t.P99, Error: t.Error, Failure: t.Failure, memory: t.Memory}
		if p.class = t.Class; p.Measurable() {
			if visits[t.Class] == nil {
				visits[t.Class] = newVisits(t.Visits)
			}
			p.visits = visits[t.Class]
		}
		l.add(p)
	}
	l.spread = newSpread(l.Points)
	if !slices.ContainsFunc(l.Points, Point.Measurable) {
		return nil, errors.New("it has no point with figures")
	}
	if l.Find(search.Candidate{}, l.Space.Load.Levels[0]) == nil {
		return nil, errors.New("the default configuration was not recorded")
	}
	return l, nil
}

// addPools adds launch times and service trials.
func (l *Landscape) addPools(f record.File, course record.Course) {
	started := map[string]bool{}
	of := func(t record.Trial) *pool {
		k := t.Candidate.PoolKey()
		p, known := l.pools[k]
		if !known {
			p = &pool{}
			l.pools[k] = p
		}
		if t.Times.Launch > 0 {
			p.launches = append(p.launches, t.Times.Launch)
		}
		switch {
		case t.Failure == nil || t.Failure.Stage != measure.StageStart:
			started[k], p.failure = true, nil
		case !started[k]:
			p.failure = t.Failure
		}
		return p
	}
	for _, s := range f.Services {
		of(s.Trial).addService(s, course)
	}
	for _, p := range f.Points {
		of(p.Trial)
	}
	for _, p := range l.pools {
		if len(p.launches) == 0 { // an incomplete file
			p.launches = durations(2)
		}
	}
}

// addService adds a service trial.
func (p *pool) addService(s record.Service, course record.Course) {
	if s.Failure != nil {
		return
	}
	speed := course.Speed(s.At)
	var pass []batchTime
	for _, b := range s.Batches {
		pass = append(pass, batchTime{b.Size, max(b.Latency.Mean(), 1e-6) * speed, newParts(b.Queue, b.Input, b.Infer, b.Output, speed)})
	}
	i := slices.IndexFunc(p.services, func(known service) bool { return known.concurrency == s.Concurrency })
	if i < 0 {
		p.services = append(p.services, service{concurrency: s.Concurrency})
		i = len(p.services) - 1
	}
	p.services[i].passes = append(p.services[i].passes, pass)
}

// addCosts takes the medians of the durations of the parts of trials. A trial also takes time that
// is not recorded: the time from the end of the previous trial, minus its own times.
func (l *Landscape) addCosts(f record.File) {
	ends := []time.Duration{0}
	for _, p := range f.Points {
		ends = append(ends, p.At)
	}
	for _, s := range f.Services {
		ends = append(ends, s.At)
	}
	slices.Sort(ends)
	untold := func(t record.Trial) float64 {
		i, _ := slices.BinarySearch(ends, t.At)
		return max(0, (t.At - ends[max(i-1, 0)] - t.Times.Total()).Seconds())
	}
	var reconfigure, warmUp, settle, other []float64
	for _, p := range f.Points {
		if p.Times.Reconfigure > time.Millisecond { // otherwise there was nothing to change
			reconfigure = append(reconfigure, p.Times.Reconfigure.Seconds())
		}
		if p.Failure == nil {
			warmUp, other = append(warmUp, p.Times.Outside().Seconds()), append(other, untold(p.Trial))
		}
	}
	for _, s := range f.Services {
		if s.Failure == nil {
			settle = append(settle, (s.Times.Outside().Seconds()+untold(s.Trial))/float64(len(s.Batches)))
		}
	}
	median := func(values []float64) time.Duration {
		if len(values) == 0 {
			return 0
		}
		return durations(stats.Median(values))[0]
	}
	l.costs = costs{median(reconfigure), median(warmUp), median(settle), median(other)}
}

// newVisits removes the machine's course from a class's visits.
func newVisits(recorded []record.Visit) [][]window {
	visits := make([][]window, len(recorded))
	for i, v := range recorded {
		for _, w := range v.Windows {
			visits[i] = append(visits[i], newWindow(w))
		}
	}
	return visits
}

// newWindow removes the machine's course from a recorded window.
func newWindow(r record.Timed) window {
	w := window{seconds: r.Duration.Seconds(), batch: 1, parts: newParts(r.Queue, r.Input, r.Infer, r.Output, r.Speed), isMeasured: true}
	requests := 0
	for _, n := range r.Requests {
		requests += n
		w.rates = append(w.rates, float64(n)*float64(len(r.Requests))/w.seconds/r.Speed)
	}
	if r.Executions > 0 {
		w.batch = max(1, float64(requests)/float64(r.Executions))
	}
	w.latency = record.NewSketch(func(level float64) float64 { return r.Latency.Quantile(level) * r.Speed })
	w.cores, w.clients = r.CPU.Seconds()/w.seconds, r.ClientCPU.Seconds()/w.seconds
	return w
}

func newParts(queue, input, infer, output time.Duration, speed float64) parts {
	return parts{queue.Seconds() * speed, input.Seconds() * speed, infer.Seconds() * speed, output.Seconds() * speed}
}
