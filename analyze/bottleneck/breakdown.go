// Package bottleneck finds what limits a configuration at a load, from the windows of its trials: the parts
// of a request's time, busy instances, and the stages of a pipeline. Package analyze puts it into the
// explanation. It ranks nothing, and knows no candidate.
package bottleneck

import (
	"maps"
	"slices"
	"time"

	"tuner/measure"
)

// Breakdown splits the mean latency of a request into its parts. It also has what server and
// machine did meanwhile.
type Breakdown struct {
	// Latency: s, mean, as the client sees it. The parts below add up to it, except for counters
	// that were read at different instants.
	Latency       float64
	Queue         float64 // s
	ComputeInput  float64 // s
	ComputeInfer  float64 // s
	ComputeOutput float64 // s
	Outside       float64 // s, the rest: client, wire and front end
	Instances     int
	Busy          float64      // mean number of instances that execute; 0 unknown
	MeanBatch     float64      // inferences per execution; 0 unknown
	Batches       []BatchShare // executed sizes, ascending; nil unknown
	EngineCPU     float64      // cores that the engine process uses; 0 unknown
	ClientCPU     float64      // cores that the load generator uses; 0 unknown
	Foreign       float64      // share of the usable CPU time that other processes use, 0..1
	Steal         float64      // share of the usable CPU time that the hypervisor takes, 0..1
	Throttled     float64      // share of the CPU time in which a cgroup's quota stops threads, 0..1
	GPU           float64      // share of the time in which the busiest GPU computes, 0..1; 0 unknown
}

// BatchShare is a batch size and how often it was executed.
type BatchShare struct {
	Size  int
	Share float64 // of all executions, 0..1
}

// batchShares counts the executions of the windows by batch size.
func batchShares(windows []measure.Window) []BatchShare {
	counts, all := map[int]int{}, 0
	for _, w := range windows {
		for _, b := range w.Server.Batches {
			counts[b.Size] += b.Executions
			all += b.Executions
		}
	}
	var list []BatchShare
	for _, size := range slices.Sorted(maps.Keys(counts)) {
		if counts[size] > 0 {
			list = append(list, BatchShare{size, float64(counts[size]) / float64(all)})
		}
	}
	return list
}

// Compute returns the part of the latency in which an instance works on the request, in seconds.
func (b Breakdown) Compute() float64 { return b.ComputeInput + b.ComputeInfer + b.ComputeOutput }

// New splits the mean latency in the windows of one load. It returns nil if the server
// reports no statistics.
func New(m measure.Measurement, instances int) *Breakdown {
	latency, ok := m.Estimate(measure.LatencyAvg)
	var server measure.ServerStats
	var busy, duration, engine, client time.Duration
	b := Breakdown{Latency: latency.Value, Instances: instances}
	for _, w := range m.Windows {
		server = plus(server, w.Server)
		busy += w.Server.InstanceTime()
		duration, engine, client = duration+w.Duration, engine+w.EngineCPU, client+w.ClientCPU
		b.Foreign += w.Foreign * w.Duration.Seconds()
		b.Steal += w.Steal * w.Duration.Seconds()
		b.Throttled += w.Throttled * w.Duration.Seconds()
		b.GPU += busiest(w.GPUs) * w.Duration.Seconds()
	}
	if !ok || server.Requests == 0 || duration <= 0 {
		return nil
	}
	perRequest := func(d time.Duration) float64 { return d.Seconds() / float64(server.Requests) }
	b.Queue, b.ComputeInput = perRequest(server.Queue), perRequest(server.ComputeInput)
	b.ComputeInfer, b.ComputeOutput = perRequest(server.ComputeInfer), perRequest(server.ComputeOutput)
	b.Outside = max(0, b.Latency-b.Queue-b.Compute())
	seconds := duration.Seconds()
	b.Busy = busy.Seconds() / seconds
	b.Batches = batchShares(m.Windows)
	b.MeanBatch, b.EngineCPU, b.ClientCPU = server.MeanBatch(), engine.Seconds()/seconds, client.Seconds()/seconds
	b.Foreign, b.Steal, b.Throttled, b.GPU = b.Foreign/seconds, b.Steal/seconds, b.Throttled/seconds, b.GPU/seconds
	return &b
}

// plus adds the fields of two windows' statistics that a breakdown uses.
func plus(a, b measure.ServerStats) measure.ServerStats {
	return measure.ServerStats{
		Requests: a.Requests + b.Requests, Inferences: a.Inferences + b.Inferences, Executions: a.Executions + b.Executions,
		Queue: a.Queue + b.Queue, ComputeInput: a.ComputeInput + b.ComputeInput, ComputeInfer: a.ComputeInfer + b.ComputeInfer,
		ComputeOutput: a.ComputeOutput + b.ComputeOutput,
	}
}

func busiest(gpus []measure.GPUWindow) float64 {
	most := 0.0
	for _, g := range gpus {
		most = max(most, g.Utilization)
	}
	return most
}

// Kind names the part that limits a configuration's throughput at a load.
type Kind string

// The bottlenecks.
const (
	Client  Kind = "client"  // the load generator, the wire or the front end; the server could do more
	Compute Kind = "compute" // the instances are busy
	Queue   Kind = "queue"   // requests wait although some instances are idle
	Memory  Kind = "memory"  // a better configuration exceeds the limit on memory
	Load    Kind = "load"    // nothing is saturated; the load sends no more
	Unknown Kind = "unknown" // the server reports no statistics
)

// Saturated is the utilization, 0..1, from which instances count as busy and cores as full.
const Saturated = 0.85

// Of finds what limits a configuration, from its breakdown. The order of the checks
// matters:
//
//   - A load generator that is short of time makes all other figures doubtful, so it comes first.
//   - Busy instances come next, since requests wait behind them in any case.
//   - If instances are idle, the longest part of the latency decides.
func Of(b *Breakdown, flags []measure.Flag) Kind {
	isGenerator := func(f measure.Flag) bool {
		return f == measure.FlagClientCPU || f == measure.FlagSendDelay || f == measure.FlagLate
	}
	switch {
	case slices.ContainsFunc(flags, isGenerator):
		return Client
	case b == nil:
		return Unknown
	case b.Busy >= Saturated*float64(b.Instances):
		return Compute
	case b.Outside > max(b.Queue, b.Compute()):
		return Client
	case b.Queue > b.Compute():
		return Queue
	}
	return Load
}
