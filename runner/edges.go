package runner

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"tuner/engine/api"
	"tuner/hostinfo"
	"tuner/measure"
)

// edge is what server and system say at one instant. What a system does not tell is zero.
type edge struct {
	at      time.Time
	server  api.ModelStatistics
	engine  hostinfo.ProcessUsage
	client  time.Duration // CPU time of this process
	machine hostinfo.CPUSnapshot
}

// edges collects the instants of a trial: before the ramp, at the first window's beginning, at each window's end.
type edges struct {
	pool     *pool
	model    string
	patience time.Duration // for the statistics
	list     []edge
}

// add looks at everything. An error says that the engine gave no statistics.
func (s *edges) add(ctx context.Context) error {
	e := edge{at: time.Now(), client: ownCPU()}
	e.machine, _ = hostinfo.CPUTimes() // zero where the system does not tell
	if pid := s.pool.engine.PID(); pid != 0 {
		e.engine, _ = hostinfo.Process(pid)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.patience, &overdueError{"reading the statistics", s.patience})
	defer cancel()
	stats, err := s.pool.control.Statistics(ctx, s.model)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("cannot read the engine's statistics: %w", err)
	}
	e.server = sumVersions(stats)
	s.list = append(s.list, e)
	return nil
}

// split divides a trial's time from begin to end into warm-up and windows.
func (s *edges) split(begin, end time.Time) (warmUp, windows time.Duration) {
	if len(s.list) < 2 {
		return end.Sub(begin), 0
	}
	return s.list[1].at.Sub(begin), end.Sub(s.list[1].at)
}

// complete adds to the load's windows what the edges tell; their Start is moved by offset.
func (s *edges) complete(windows []measure.Window, offset time.Duration) []measure.Window {
	complete := slices.Clone(windows)
	for i := range complete {
		w := &complete[i]
		a, b := s.list[i+1], s.list[i+2]
		w.Start += offset
		w.Server = serverDelta(a.server, b.server)
		w.EngineCPU = b.engine.CPU - a.engine.CPU
		w.ClientCPU = b.client - a.client
		w.Steal, w.Foreign = shares(b.machine.Since(a.machine), w.EngineCPU+w.ClientCPU)
		w.Flags = append(slices.Clone(w.Flags), machineFlags(*w)...)
	}
	return complete
}

// executionsPerSecond is the rate at which the model was executed since an earlier edge.
func (e edge) executionsPerSecond(earlier edge) float64 {
	return float64(e.server.ExecutionCount-earlier.server.ExecutionCount) / e.at.Sub(earlier.at).Seconds()
}

// ownCPU is the CPU time that this process has used.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// sumVersions adds up the statistics of a model's versions; one is served as a rule.
func sumVersions(s api.Statistics) api.ModelStatistics {
	var sum api.ModelStatistics
	for _, m := range s.ModelStats {
		sum.InferenceCount += m.InferenceCount
		sum.ExecutionCount += m.ExecutionCount
		a, b := &sum.InferenceStats, m.InferenceStats
		a.Success = addDurations(a.Success, b.Success)
		a.Queue = addDurations(a.Queue, b.Queue)
		a.ComputeInput = addDurations(a.ComputeInput, b.ComputeInput)
		a.ComputeInfer = addDurations(a.ComputeInfer, b.ComputeInfer)
		a.ComputeOutput = addDurations(a.ComputeOutput, b.ComputeOutput)
		sum.BatchStats = append(sum.BatchStats, m.BatchStats...)
	}
	return sum
}

func addDurations(a, b api.Duration) api.Duration {
	return api.Duration{Count: a.Count + b.Count, NS: a.NS + b.NS}
}

// serverDelta is the change of the statistics from a to b.
func serverDelta(a, b api.ModelStatistics) measure.ServerStats {
	part := func(a, b api.Duration) time.Duration { return time.Duration(b.NS - a.NS) }
	return measure.ServerStats{
		Requests:      int(b.InferenceStats.Success.Count - a.InferenceStats.Success.Count),
		Inferences:    int(b.InferenceCount - a.InferenceCount),
		Executions:    int(b.ExecutionCount - a.ExecutionCount),
		Queue:         part(a.InferenceStats.Queue, b.InferenceStats.Queue),
		ComputeInput:  part(a.InferenceStats.ComputeInput, b.InferenceStats.ComputeInput),
		ComputeInfer:  part(a.InferenceStats.ComputeInfer, b.InferenceStats.ComputeInfer),
		ComputeOutput: part(a.InferenceStats.ComputeOutput, b.InferenceStats.ComputeOutput),
		Batches:       batchDelta(a.BatchStats, b.BatchStats),
	}
}

// batchDelta lists the batch sizes that were executed between a and b, ascending.
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
