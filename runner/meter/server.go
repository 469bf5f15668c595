package meter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tuner/engine/api"
	"tuner/measure"
)

// readServer reads the server's statistics of all models into r, from one answer.
func (m *Meter) readServer(ctx context.Context, r *Reading) error {
	o := m.options
	if o.Control == nil {
		return nil
	}
	asked := o.asked()
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, &OverdueError{o.Timeout})
	defer cancel()
	answer, err := o.Control.Statistics(ctx, asked)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && asked == "":
		return fmt.Errorf("cannot read the statistics of all models: %w", err)
	case err != nil:
		return fmt.Errorf("cannot read the statistics of model %q: %w", asked, err)
	}
	for _, s := range o.Models {
		c, err := s.counters(answer)
		if err != nil {
			return err
		}
		r.Models = append(r.Models, c)
	}
	return nil
}

// asked returns the name of the only model whose statistics are read, or "" if there are several.
func (o Options) asked() string {
	if len(o.Models) == 1 && len(o.Models[0].Together) == 0 {
		return o.Models[0].Name
	}
	return ""
}

// counters finds the subject's statistics in an answer.
func (s Subject) counters(answer api.Statistics) (c Counters, err error) {
	if c.Own, err = versions(answer, s.Name, s.Version); err != nil {
		return Counters{}, err
	}
	for _, model := range s.Together {
		all, err := versions(answer, model.Name, model.Version)
		if err != nil {
			return Counters{}, err
		}
		c.Together = append(c.Together, all)
	}
	return c, nil
}

// versions returns the statistics of a model's versions. If version is not "", it returns only that
// one.
func versions(s api.Statistics, model, version string) ([]api.ModelStatistics, error) {
	var found []api.ModelStatistics
	var there []string
	for _, m := range s.ModelStats {
		if m.Name != model {
			continue
		}
		there = append(there, m.Version)
		if version == "" || m.Version == version {
			found = append(found, m)
		}
	}
	switch {
	case len(there) == 0:
		return nil, fmt.Errorf("cannot find model %q in the server's statistics", model)
	case len(found) == 0:
		return nil, fmt.Errorf("cannot find version %q of model %q in the server's statistics: there is %s", version, model, strings.Join(there, ", "))
	}
	return found, nil
}

// Served returns the change of the model's statistics between two readings. It takes the version
// whose requests grew most. If none grew, it returns zero. An ensemble has its own counts. The
// parts of its requests' time are sums over its models.
func Served(from, to Counters) measure.ServerStats {
	served := delta(busiest(from.Own, to.Own))
	if len(to.Together) == 0 {
		return served
	}
	served.Queue, served.ComputeInput, served.ComputeInfer, served.ComputeOutput = 0, 0, 0, 0
	for _, part := range Composed(from, to) {
		served.Queue += part.Queue
		served.ComputeInput += part.ComputeInput
		served.ComputeInfer += part.ComputeInfer
		served.ComputeOutput += part.ComputeOutput
	}
	return served
}

// Part is the change of one model of Subject.Together between two readings.
type Part struct {
	Model // with the version that served; the last version if none did
	measure.ServerStats
}

// Composed returns Served for each model of Subject.Together, in that order.
func Composed(from, to Counters) []Part {
	var parts []Part
	for i := range min(len(from.Together), len(to.Together)) {
		all := to.Together[i]
		before, after := busiest(from.Together[i], all)
		named := after
		if named.Name == "" {
			// there is at least one, otherwise the reading would have failed
			named = all[len(all)-1]
		}
		parts = append(parts, Part{Model{named.Name, named.Version}, delta(before, after)})
	}
	return parts
}

// busiest returns the statistics of the version with the most requests between two instants. It
// returns zero if there were none. It counts requests in the queue and failures, since a failed
// request may not have been in the queue.
func busiest(a, b []api.ModelStatistics) (from, to api.ModelStatistics) {
	requests := func(m api.ModelStatistics) uint64 { return m.InferenceStats.Queue.Count + m.InferenceStats.Fail.Count }
	var most uint64
	for _, later := range b {
		var earlier api.ModelStatistics // zero if the version was loaded between the instants
		same := func(m api.ModelStatistics) bool { return m.Version == later.Version && requests(m) <= requests(later) }
		if i := slices.IndexFunc(a, same); i >= 0 {
			earlier = a[i]
		}
		if grown := requests(later) - requests(earlier); grown > most {
			most, from, to = grown, earlier, later
		}
	}
	return from, to
}

// delta returns the change of a version's statistics.
func delta(from, to api.ModelStatistics) measure.ServerStats {
	a, b := from.InferenceStats, to.InferenceStats
	count := func(a, b api.Duration) int { return int(b.Count - a.Count) }
	spent := func(a, b api.Duration) time.Duration { return time.Duration(b.NS - a.NS) }
	return measure.ServerStats{
		Requests:      count(a.Success, b.Success),
		Inferences:    int(to.InferenceCount - from.InferenceCount),
		Executions:    int(to.ExecutionCount - from.ExecutionCount),
		Queue:         spent(a.Queue, b.Queue),
		ComputeInput:  spent(a.ComputeInput, b.ComputeInput),
		ComputeInfer:  spent(a.ComputeInfer, b.ComputeInfer),
		ComputeOutput: spent(a.ComputeOutput, b.ComputeOutput),
		Success:       spent(a.Success, b.Success),
		Failures:      count(a.Fail, b.Fail),
		CacheHits:     count(a.CacheHit, b.CacheHit),
		CacheMisses:   count(a.CacheMiss, b.CacheMiss),
		CacheHit:      spent(a.CacheHit, b.CacheHit),
		CacheMiss:     spent(a.CacheMiss, b.CacheMiss),
		Batches:       batchDelta(from.BatchStats, to.BatchStats),
	}
}

// batchDelta returns the batch sizes that were executed between a and b, in ascending order.
func batchDelta(a, b []api.BatchStatistics) []measure.BatchStat {
	sums := map[int]measure.BatchStat{}
	add := func(list []api.BatchStatistics, sign int) {
		for _, s := range list {
			sum := sums[int(s.BatchSize)]
			sum.Size = int(s.BatchSize)
			sum.Executions += sign * int(s.ComputeInfer.Count)
			sum.ComputeInfer += time.Duration(sign) * time.Duration(s.ComputeInfer.NS)
			sums[sum.Size] = sum
		}
	}
	add(a, -1)
	add(b, 1)
	var delta []measure.BatchStat
	for _, s := range sums {
		if s.Executions > 0 {
			delta = append(delta, s)
		}
	}
	slices.SortFunc(delta, func(a, b measure.BatchStat) int { return a.Size - b.Size })
	return delta
}
