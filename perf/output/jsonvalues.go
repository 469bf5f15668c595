package output

import (
	"strconv"
	"time"

	"tuner/measure"
	"tuner/perf"
)

func settingsOf(s perf.Settings) jsonSettings {
	j := jsonSettings{
		Model: s.Model, Version: s.Version, URL: s.URL, Protocol: s.Protocol, Mode: s.Mode,
		Levels: jsonRange{Start: s.Levels.Start, Step: s.Levels.Step}, Search: s.Search, LatencyLimit: s.LatencyLimit.Seconds(), GoodputLimit: s.Goodput.Seconds(),
		Percentile: s.Percentile, Batch: s.Batch,
		Stop: jsonStop{Rule: s.Stop.Rule, Precision: s.Stop.Precision, Budget: s.Stop.Budget.Seconds(), Stability: s.Stop.Stability,
			Trials: s.Stop.Trials, Window: s.Stop.Window.Seconds(), Requests: s.Stop.Requests},
		RequestCount: s.RequestCount, WarmUpRequests: s.WarmUpRequests, Streams: s.Streams, Steps: s.Steps, Async: s.Async,
		Streaming: s.Streaming, Decoupled: s.Decoupled, Cache: s.Cache, Statistics: s.Statistics, Metrics: s.Metrics, PID: s.PID, Seed: s.Seed,
	}
	if s.Mode == perf.ModeRate {
		j.Distribution = s.Arrivals.Of()
		if text := s.Arrivals.String(); text != string(j.Distribution) {
			j.Arrivals = text
		}
	}
	if !s.Levels.Open {
		j.Levels.End = &s.Levels.End
	}
	return j
}

func levelOf(l perf.Level, s perf.Settings) jsonLevel {
	j := jsonLevel{
		Load: l.Load, Seed: l.Seed, Begin: l.Begin, WarmUp: l.WarmUp.Seconds(), Verdict: l.Verdict, Limit: l.Limit, Failure: l.Failure,
		Warnings: orEmpty(l.Warnings), Unfinished: l.Unfinished, Waited: l.Waited.Seconds(), Resent: l.Resent,
		jsonMeasurement: measurementOf(l.Measurement, l.Load, s), Histogram: totalOf(l.Measurement).latency, Windows: []jsonWindow{},
	}
	for _, w := range l.Measurement.Windows {
		j.Windows = append(j.Windows, windowOf(w, s))
	}
	for _, c := range l.Composing {
		j.Composing = append(j.Composing, jsonComposing{Model: c.Model, Version: c.Version, Server: serverOf(c.Server)})
	}
	for _, o := range l.Others {
		j.Others = append(j.Others, jsonOther{Model: o.Model, Load: o.Load, jsonMeasurement: measurementOf(o.Measurement, o.Load, s)})
	}
	return j
}

func measurementOf(m measure.Measurement, load measure.Load, s perf.Settings) jsonMeasurement {
	t := totalOf(m)
	j := jsonMeasurement{
		Duration: t.duration.Seconds(), Latency: map[string]jsonEstimate{}, Std: m.Std().Seconds(), InFlight: t.inFlight,
		jsonCounts: jsonCounts{Requests: t.requests, Inferences: t.inferences, Responses: t.toldResponses(s), Errors: t.errors, TimedOut: t.timedOut,
			FirstError: t.firstError, Scheduled: t.scheduled, Late: t.late, Dropped: t.dropped},
		Service: percentilesOf(t.service), SendDelay: percentilesOf(t.sendDelay), Server: serverOf(t.server),
		ClientCPU: t.clientCPU.Seconds(), Foreign: t.foreign, Steal: t.steal, Throttled: t.throttled, GPUs: t.gpus, Energy: t.energy(), Flags: orEmpty(m.Flags()),
	}
	if e, ok := m.Estimate(measure.Throughput); ok {
		e = load.Bounded(measure.Throughput, e)
		j.Throughput = &jsonEstimate{e.Value, e.Lo, &e.Hi}
	}
	if e, ok := goodput(m, load, s); ok {
		j.Goodput = &jsonEstimate{e.Value, e.Lo, &e.Hi}
	}
	if e, ok := m.Estimate(measure.LatencyAvg); ok {
		j.Latency["mean"] = jsonEstimate{e.Value, e.Lo, &e.Hi}
	}
	for _, p := range percentiles(s) {
		e, ok := m.Percentile(float64(p) / 100)
		if !ok {
			continue
		}
		bounded := jsonEstimate{Value: e.Value, Lo: e.Lo}
		if m.Bounded(float64(p) / 100) {
			bounded.Hi = &e.Hi
		}
		j.Latency["p"+strconv.Itoa(p)] = bounded
	}
	if t.engineCPU > 0 || m.Memory > 0 {
		j.Engine = &jsonEngine{CPU: t.engineCPU.Seconds(), Memory: m.Memory}
	}
	return j
}

func windowOf(w measure.Window, s perf.Settings) jsonWindow {
	one := measure.Measurement{Windows: []measure.Window{w}}
	t := totalOf(one)
	j := jsonWindow{
		Start: w.Start.Seconds(), Duration: w.Duration.Seconds(), Throughput: t.rate(t.inferences),
		Latency: percentilesOf(t.latency), Service: percentilesOf(t.service), SendDelay: percentilesOf(t.sendDelay),
		jsonCounts: jsonCounts{Requests: w.Requests, Inferences: w.Inferences, Responses: t.toldResponses(s), Errors: w.Errors, TimedOut: w.TimedOut,
			FirstError: w.FirstError, Scheduled: w.Scheduled, Late: w.Late, Dropped: w.Dropped},
		InFlight: w.InFlight, Server: serverOf(w.Server), ClientCPU: w.ClientCPU.Seconds(), Foreign: w.Foreign, Steal: w.Steal, Throttled: w.Throttled,
		Frequency: w.Frequency, GPUs: w.GPUs, Flags: orEmpty(w.Flags),
	}
	if w.EngineCPU > 0 {
		j.Engine = &jsonEngine{CPU: w.EngineCPU.Seconds()}
	}
	return j
}

// serverOf returns nil if the server has no statistics, or served nothing.
func serverOf(s measure.ServerStats) *jsonServer {
	if s.Requests == 0 && s.Failures == 0 {
		return nil
	}
	computed := s.Requests - s.CacheHits
	j := &jsonServer{
		Requests: s.Requests, Failures: s.Failures, Inferences: s.Inferences, Executions: s.Executions, MeanBatch: s.MeanBatch(),
		Latency: perOne(s.Success, s.Requests), Queue: perOne(s.Queue, s.Requests), ComputeInput: perOne(s.ComputeInput, computed),
		ComputeInfer: perOne(s.ComputeInfer, computed), ComputeOutput: perOne(s.ComputeOutput, computed),
		CacheHits: s.CacheHits, CacheMisses: s.CacheMisses, CacheHit: perOne(s.CacheHit, s.CacheHits), CacheMiss: perOne(s.CacheMiss, s.CacheMisses),
	}
	for _, b := range s.Batches {
		j.Batches = append(j.Batches, jsonBatch{Size: b.Size, Executions: b.Executions, ComputeInfer: perOne(b.ComputeInfer, b.Executions)})
	}
	return j
}

// percentilesOf returns nil for an empty distribution.
func percentilesOf(h measure.Histogram) *jsonPercentiles {
	if h.Count() == 0 {
		return nil
	}
	return &jsonPercentiles{
		Mean: h.Mean().Seconds(), P50: h.Quantile(0.5).Seconds(), P90: h.Quantile(0.9).Seconds(), P95: h.Quantile(0.95).Seconds(),
		P99: h.Quantile(0.99).Seconds(), Max: h.Quantile(1).Seconds(),
	}
}

// perOne returns a mean in seconds; 0 if count is 0.
func perOne(d time.Duration, count int) float64 {
	if count <= 0 {
		return 0
	}
	return d.Seconds() / float64(count)
}

// orEmpty returns a list that JSON writes as [], never as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
