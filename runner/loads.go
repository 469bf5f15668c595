package runner

import (
	"context"
	"time"

	"tuner/measure"
	"tuner/runner/load"
)

// configure loads the configurations of the job's models that are not loaded already. A change of one
// model leaves the sessions of the others alone.
func (r *Runner) configure(ctx context.Context, job Job) error {
	for _, part := range job.each() {
		if err := r.configurePipeline(ctx, part); err != nil {
			return job.named(part.Model, err)
		}
	}
	return nil
}

// configurePipeline loads the configuration of a model, and then those of its stages. As in Triton, a load
// of an ensemble loads its models as their folders say, whatever was loaded before. So the stages come
// after it, and once more after each load of it.
func (r *Runner) configurePipeline(ctx context.Context, part Job) error {
	if isLoaded := r.pool.models[part.Model].config == part.Config; !isLoaded {
		for _, stage := range part.Stages {
			delete(r.pool.models, stage.Model)
		}
	}
	if err := r.configureOne(ctx, part); err != nil {
		return err
	}
	for _, stage := range part.Stages {
		if err := r.configureOne(ctx, stage); err != nil {
			return &load.PartError{Model: stage.Model, Cause: err}
		}
	}
	return nil
}

func (r *Runner) configureOne(ctx context.Context, part Job) error {
	state := r.pool.models[part.Model]
	if state.config == part.Config {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.options.LoadTimeout, &overdueError{"loading the model", r.options.LoadTimeout})
	defer cancel()
	if err := r.pool.control.LoadModel(ctx, part.Model, part.Config); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &loadError{err}
	}
	state.config = part.Config
	if r.options.Reloads {
		state.ramped, r.pool.slowest = 0, 0
	}
	r.pool.models[part.Model] = state
	return nil
}

// runLoad runs the approach of each model and then the loads of all on the engine, and returns the
// windows. It writes their times, and whether they were cut, to m.
func (r *Runner) runLoad(ctx context.Context, job Job, approach func(part Job) approach, m *measure.Measurement) ([]measure.Window, error) {
	begin := time.Now()
	loads, err := r.loads(job, approach)
	if err != nil {
		return nil, &requestError{err}
	}
	seen := openEdges(ctx, r.pool, job.each(), r.options)
	defer seen.close()
	if err := seen.add(ctx); err != nil {
		return nil, err
	}
	results, err := load.Together(ctx, loads.parts, load.Windows{
		More:   func(windows [][]measure.Window) bool { return len(windows[0]) < job.Windows },
		Enough: job.enough(),
		Length: func(p99 []time.Duration) time.Duration { return job.whole(loads.length(p99, seen)) },
		Edge:   func(ctx context.Context, _ int) error { return seen.add(ctx) },
	})
	if err != nil {
		m.Times.WarmUp, m.Times.Windows = seen.split(begin, time.Now())
		return nil, err
	}
	last := results[0].Windows[len(results[0].Windows)-1]
	end := results[0].Begin.Add(last.Start + last.Duration)
	m.Times.WarmUp, m.Times.Windows = seen.split(begin, end)
	m.Times.Drain = time.Since(end)
	m.Cut, r.pool.memory = results[0].Cut, seen.memory()
	of := make([][]measure.Window, len(results))
	for i, part := range job.each() {
		state := r.pool.models[part.Model]
		state.ramped = max(state.ramped, loads.approaches[i].ramped)
		r.pool.models[part.Model], r.pool.slowest = state, max(r.pool.slowest, results[i].Slowest)
		of[i] = seen.complete(i, results[i].Windows, results[i].Begin.Sub(r.options.Epoch))
	}
	return job.flagFew(job.interleave(of)), nil
}

// loads are the loads of a job's models, and how each is approached.
type loads struct {
	parts      []load.Part
	approaches []approach
}

// loads prepares the load of each model.
func (r *Runner) loads(job Job, approach func(part Job) approach) (loads, error) {
	var all loads
	for _, part := range job.each() {
		connections, err := r.connections(part)
		if err != nil {
			return all, err
		}
		schedule, err := r.schedule(part)
		if err != nil {
			return all, err
		}
		a := approach(part)
		all.approaches = append(all.approaches, a)
		all.parts = append(all.parts, load.Part{
			Model: job.nameOf(part), Load: part.Load, Arrivals: schedule, Order: part.Order, Period: part.period(), MaxInFlight: mostInFlight,
			Large: connections.IsLarge(),
			Dial: func(ctx context.Context, _ int) (load.Conn, error) {
				return connections.Dial(ctx, part.Load.Concurrency)
			},
			Ramp: a.ramp, WarmUp: a.warmUp, Unsettled: a.passing, WarmUpRequests: a.requests,
			Patience: r.options.Patience, First: r.pool.first(r.options.LoadTimeout),
		})
	}
	return all, nil
}

// length returns the length of the windows: that of the model that needs the longest.
func (l loads) length(p99 []time.Duration, seen *edges) time.Duration {
	length := time.Duration(0)
	for i, a := range l.approaches {
		length = max(length, a.length(p99[i], seen.rampExecutions(i)))
	}
	return length
}

// connections returns what opens connections with a model's requests. It prepares these unless they
// are those of the load before.
func (r *Runner) connections(part Job) (Connections, error) {
	before := r.prepared[part.Model]
	if before.isOf(part.Requests, r.pool.engine) {
		return before.connections, nil
	}
	connections, err := r.options.Wire(r.pool.engine.Address(), part.Requests, part.AnswerSize)
	if err != nil {
		return nil, err
	}
	if r.prepared == nil {
		r.prepared = map[string]prepared{}
	}
	r.prepared[part.Model] = prepared{part.Requests, r.pool.engine, connections}
	return connections, nil
}

// mostInFlight bounds the requests in flight of an open loop. Requests that are due beyond it count
// as failed.
const mostInFlight = 1024

// schedule returns the schedule of an open loop, with a new seed for each load. The seed is the number
// of the launch and that of the schedule within it, so that a resumed campaign does not repeat the
// arrivals of its first launches. For a closed loop the schedule is nil.
func (r *Runner) schedule(part Job) (load.Arrivals, error) {
	if part.Load.Concurrency > 0 {
		return nil, nil
	}
	r.pool.schedules++
	return part.Arrivals.Schedule(part.Load.RequestRate, uint64(r.pool.launch)<<32|uint64(r.pool.schedules))
}
