package output

import (
	"cmp"
	"slices"
	"time"

	"tuner/measure"
	"tuner/perf"
)

// total holds the pooled figures of a measurement's windows.
type total struct {
	duration                                time.Duration
	requests, inferences, responses, errors int
	timedOut, scheduled, late, dropped      int
	firstError                              string
	latency, service, sendDelay             measure.Histogram
	inFlight                                float64 // mean over the time
	server                                  measure.ServerStats
	engineCPU, clientCPU                    time.Duration
	steal, foreign, throttled               float64             // shares, means over the time
	gpus                                    []measure.GPUWindow // by UUID
}

func totalOf(m measure.Measurement) total {
	var t total
	var latency, service, sendDelay []measure.Histogram
	for _, w := range m.Windows {
		t.duration += w.Duration
		t.requests += w.Requests
		t.inferences += w.Inferences
		t.responses += w.AllResponses()
		t.errors += w.Errors
		t.timedOut += w.TimedOut
		t.scheduled += w.Scheduled
		t.late += w.Late
		t.dropped += w.Dropped
		t.firstError = cmp.Or(t.firstError, w.FirstError)
		t.engineCPU += w.EngineCPU
		t.clientCPU += w.ClientCPU
		t.inFlight += w.InFlight * w.Duration.Seconds()
		t.steal += w.Steal * w.Duration.Seconds()
		t.foreign += w.Foreign * w.Duration.Seconds()
		t.throttled += w.Throttled * w.Duration.Seconds()
		t.server = sum(t.server, w.Server)
		sendDelay = append(sendDelay, w.SendDelay)
		for _, s := range w.Sub {
			latency, service = append(latency, s.Latency), append(service, s.Service)
		}
	}
	if seconds := t.duration.Seconds(); seconds > 0 {
		t.inFlight, t.steal, t.foreign, t.throttled = t.inFlight/seconds, t.steal/seconds, t.foreign/seconds, t.throttled/seconds
	}
	t.latency, t.service, t.sendDelay = measure.Merge(latency...), measure.Merge(service...), measure.Merge(sendDelay...)
	t.gpus = gpusOf(m.Windows)
	return t
}

// rate returns a count per second; 0 without time.
func (t total) rate(count int) float64 {
	if t.duration <= 0 {
		return 0
	}
	return float64(count) / t.duration.Seconds()
}

// toldResponses returns the number of responses for programs; 0 for a model that gives one per
// request by its nature.
func (t total) toldResponses(s perf.Settings) int {
	if !s.Decoupled && t.responses == t.requests {
		return 0
	}
	return t.responses
}

// lateShare returns the share of the scheduled requests that were sent more than 1 ms late.
func (t total) lateShare() float64 {
	if t.scheduled == 0 {
		return 0
	}
	return float64(t.late) / float64(t.scheduled)
}

// energy returns the GPUs' energy in J per inference. 0: unknown.
func (t total) energy() float64 {
	if t.inferences == 0 {
		return 0
	}
	var joules float64
	for _, g := range t.gpus {
		joules += g.Energy
	}
	return joules / float64(t.inferences)
}

// sum adds the server's statistics up.
func sum(a, b measure.ServerStats) measure.ServerStats {
	return measure.ServerStats{
		Requests:      a.Requests + b.Requests,
		Inferences:    a.Inferences + b.Inferences,
		Executions:    a.Executions + b.Executions,
		Queue:         a.Queue + b.Queue,
		ComputeInput:  a.ComputeInput + b.ComputeInput,
		ComputeInfer:  a.ComputeInfer + b.ComputeInfer,
		ComputeOutput: a.ComputeOutput + b.ComputeOutput,
		Success:       a.Success + b.Success,
		Failures:      a.Failures + b.Failures,
		CacheHits:     a.CacheHits + b.CacheHits,
		CacheMisses:   a.CacheMisses + b.CacheMisses,
		CacheHit:      a.CacheHit + b.CacheHit,
		CacheMiss:     a.CacheMiss + b.CacheMiss,
		Batches:       sumBatches(a.Batches, b.Batches),
	}
}

// sumBatches adds up the executions of each batch size, in ascending order of size.
func sumBatches(a, b []measure.BatchStat) []measure.BatchStat {
	list := slices.Clone(a)
	for _, more := range b {
		i, found := slices.BinarySearchFunc(list, more.Size, func(s measure.BatchStat, size int) int { return cmp.Compare(s.Size, size) })
		if !found {
			list = slices.Insert(list, i, measure.BatchStat{Size: more.Size})
		}
		list[i].Executions += more.Executions
		list[i].ComputeInfer += more.ComputeInfer
	}
	return list
}

// gpusOf merges the figures of each GPU as perf_analyzer does: means of utilisation and power, the
// largest used memory. It adds up the energy.
func gpusOf(windows []measure.Window) []measure.GPUWindow {
	var list []measure.GPUWindow
	seen := map[string]int{} // windows by UUID
	for _, w := range windows {
		for _, g := range w.GPUs {
			i := slices.IndexFunc(list, func(known measure.GPUWindow) bool { return known.UUID == g.UUID })
			if i < 0 {
				i, list = len(list), append(list, measure.GPUWindow{UUID: g.UUID, MemoryTotal: g.MemoryTotal})
			}
			seen[g.UUID]++
			list[i].Utilization += g.Utilization
			list[i].Power += g.Power
			list[i].Energy += g.Energy
			list[i].MemoryUsed = max(list[i].MemoryUsed, g.MemoryUsed)
		}
	}
	for i := range list {
		n := float64(seen[list[i].UUID])
		list[i].Utilization /= n
		list[i].Power /= n
	}
	slices.SortFunc(list, func(a, b measure.GPUWindow) int { return cmp.Compare(a.UUID, b.UUID) })
	return list
}

// parts are the server's means per request in whole microseconds, computed as in perf_analyzer:
// each part is rounded down separately.
type parts struct {
	success, queue, input, infer, output int64
	compute                              int64 // requests that were computed
	hit, miss                            int64 // of the response cache
	accounted                            int64 // hits, misses and computing together, per request
}

func partsOf(s measure.ServerStats) parts {
	computed := s.Requests - s.CacheHits
	return parts{
		success: each(s.Success, s.Requests), queue: each(s.Queue, s.Requests),
		input: each(s.ComputeInput, computed), infer: each(s.ComputeInfer, computed), output: each(s.ComputeOutput, computed),
		compute: each(s.Compute(), computed),
		hit:     each(s.CacheHit, s.CacheHits), miss: each(s.CacheMiss, s.CacheMisses),
		accounted: each(s.Compute()+s.CacheHit+s.CacheMiss, s.Requests),
	}
}

// overhead returns the server's time that belongs to no part.
func (p parts) overhead(known int64) int64 { return max(0, p.success-p.queue-known) }

// each returns a mean in whole microseconds; 0 if count is 0.
func each(d time.Duration, count int) int64 {
	if count <= 0 {
		return 0
	}
	return int64(d) / (int64(count) * int64(time.Microsecond))
}
