package landscape

import (
	"math"
	"time"

	"tuner/lab/landscape/record"
	"tuner/measure"
)

// window is the unit that a replay draws: a window without the machine's drift at its time.
type window struct {
	seconds    float64
	rates      []float64 // requests/s, by parts of equal length
	latency    record.Sketch
	batch      float64 // requests in an execution, mean
	cores      float64 // cores that the engine used; 0 unknown
	clients    float64 // cores that the clients used; 0 unknown
	parts      parts
	isMeasured bool // its latencies are already a sample; else they are a distribution to draw from
}

// parts splits a request's time in the server, in seconds.
type parts struct{ queue, input, infer, output float64 }

// part returns a window between two shares of its time. Figures of the whole window apply to the
// part.
func (w window) part(from, to float64) window {
	n := float64(len(w.rates))
	first := min(int(math.Round(from*n)), len(w.rates)-1)
	w.rates = w.rates[first:max(first+1, int(math.Round(to*n)))]
	return w
}

// subWindows is the number of slices of a replayed window.
const subWindows = 10

// golden is the step of the golden ratio. Requests whose latency is drawn one by one are spread
// evenly over the distribution by it.
const golden = 0.6180339887498949

// play makes a measured window from a drawn one. It has the given seconds, begins at a time of the
// machine's weather, and runs on a launch with a known speed. In a closed loop latencies are longer
// by the factor by which the machine is slower.
func (m *Machine) play(w window, begin time.Duration, seconds, launch float64, clientBatch int) measure.Window {
	length := time.Duration(seconds * float64(time.Second))
	result := measure.Window{Start: begin, Duration: length}
	slice := length / subWindows
	tail := math.Exp(m.landscape.noise.Tail * m.random.NormFloat64())
	carry, level := m.random.Float64(), m.random.Float64()
	var spent parts
	worked := 0.0 // share of the time in which it would have had the cores alone
	for i := range subWindows {
		from := begin + time.Duration(i)*slice
		left := slowed(w.cores+w.clients, m.landscape.Space.Facts.Cores, m.weather.taken(from, from+slice))
		worked += left / subWindows
		speed := launch * m.weather.mean(from, from+slice) * left
		carry += w.rates[i*len(w.rates)/subWindows] * slice.Seconds() * speed
		n := int(carry)
		carry -= float64(n)
		m.recorder.Reset()
		level = m.latencies(w, n, level, tail, speed)
		result.Sub = append(result.Sub, measure.SubWindow{Requests: n, Duration: slice, Latency: m.recorder.Histogram(), Sum: m.recorder.Sum()})
		result.Requests += n
		spent.add(w.parts, float64(n)/speed)
	}
	result.Inferences = result.Requests * clientBatch
	result.EngineCPU = time.Duration(worked * w.cores * float64(length))
	result.ClientCPU = time.Duration(worked * w.clients * float64(length))
	result.Steal = m.weather.steal(begin + length/2)
	result.Server = spent.server(result.Requests, clientBatch, w.batch)
	return m.beside(result)
}

// mostForeign is the share of the cores' time above which others flag a window (package meter).
const mostForeign = 0.10

// beside adds the neighbour's share during a window.
func (m *Machine) beside(w measure.Window) measure.Window {
	w.Foreign, w.Flags = m.weather.taken(w.Start, w.Start+w.Duration), nil
	if w.Foreign > mostForeign {
		w.Flags = []measure.Flag{measure.FlagForeign}
	}
	return w
}

// latencies records the latencies of n requests. The requests of a batch end together, so those of
// a distribution are drawn by batches.
func (m *Machine) latencies(w window, n int, level, tail, speed float64) float64 {
	together := 1
	if !w.isMeasured {
		together = max(1, int(math.Round(w.batch)))
	}
	for done := 0; done < n; done += together {
		if w.isMeasured {
			level = math.Mod(level+golden, 1)
		} else {
			level = m.random.Float64()
		}
		seconds := w.latency.Quantile(level) / speed
		if !w.isMeasured {
			seconds *= stretched(level, tail)
		}
		latency := time.Duration(seconds * float64(time.Second))
		for range min(together, n-done) {
			m.recorder.Record(latency)
		}
	}
	return level
}

// stretched returns the factor on a quantile if the tail is longer by another factor. It is 1 up to
// the median, and the full factor from the 99th percentile on. In between it grows in proportion to
// the distance on log scale.
func stretched(level, tail float64) float64 {
	if level <= 0.5 {
		return 1
	}
	out := math.Log(0.5/max(1-level, 0.01)) / math.Log(0.5/0.01)
	return math.Pow(tail, out)
}

func (p *parts) add(q parts, factor float64) {
	p.queue += q.queue * factor
	p.input += q.input * factor
	p.infer += q.infer * factor
	p.output += q.output * factor
}

// server makes the server's statistics from sums over requests.
func (p parts) server(requests, clientBatch int, batch float64) measure.ServerStats {
	sum := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	executions := min(requests, int(math.Ceil(float64(requests)/max(batch, 1))))
	s := measure.ServerStats{
		Requests: requests, Inferences: requests * clientBatch, Executions: executions,
		Queue: sum(p.queue), ComputeInput: sum(p.input), ComputeInfer: sum(p.infer), ComputeOutput: sum(p.output),
		Success: sum(p.queue + p.input + p.infer + p.output),
	}
	if executions > 0 {
		s.Batches = []measure.BatchStat{{Size: s.Inferences / executions, Executions: executions, ComputeInfer: s.ComputeInfer / time.Duration(max(1, requests/executions))}}
	}
	return s
}

// joined combines several windows into one.
func joined(windows []measure.Window) measure.Window {
	all := windows[0]
	all.Steal /= float64(len(windows))
	for _, w := range windows[1:] {
		all.Duration += w.Duration
		all.Requests += w.Requests
		all.Inferences += w.Inferences
		all.EngineCPU, all.ClientCPU = all.EngineCPU+w.EngineCPU, all.ClientCPU+w.ClientCPU
		all.Steal += w.Steal / float64(len(windows))
		all.Sub = append(all.Sub, w.Sub...)
		s, t := &all.Server, w.Server
		s.Requests, s.Inferences, s.Executions = s.Requests+t.Requests, s.Inferences+t.Inferences, s.Executions+t.Executions
		s.Queue, s.ComputeInput, s.ComputeInfer = s.Queue+t.Queue, s.ComputeInput+t.ComputeInput, s.ComputeInfer+t.ComputeInfer
		s.ComputeOutput, s.Success = s.ComputeOutput+t.ComputeOutput, s.Success+t.Success
		s.Batches = append(s.Batches, t.Batches...)
	}
	return all
}

// until returns a window up to a share of its slices. Figures of the whole window are scaled by the
// share of its requests.
func until(w measure.Window, share float64) measure.Window {
	part := w
	part.Sub = w.Sub[:int(math.Ceil(share*float64(len(w.Sub))))]
	part.Duration, part.Requests = 0, 0
	for _, s := range part.Sub {
		part.Duration, part.Requests = part.Duration+s.Duration, part.Requests+s.Requests
	}
	ratio := float64(part.Requests) / float64(max(w.Requests, 1))
	count := func(n int) int { return int(math.Round(ratio * float64(n))) }
	time := func(d time.Duration) time.Duration { return time.Duration(ratio * float64(d)) }
	part.Inferences = count(w.Inferences)
	part.EngineCPU, part.ClientCPU = time(w.EngineCPU), time(w.ClientCPU)
	s, t := &part.Server, w.Server
	s.Requests, s.Inferences, s.Executions = count(t.Requests), count(t.Inferences), count(t.Executions)
	s.Queue, s.ComputeInput, s.ComputeInfer = time(t.Queue), time(t.ComputeInput), time(t.ComputeInfer)
	s.ComputeOutput, s.Success = time(t.ComputeOutput), time(t.Success)
	s.Batches = nil
	for _, b := range t.Batches {
		s.Batches = append(s.Batches, measure.BatchStat{Size: b.Size, Executions: count(b.Executions), ComputeInfer: time(b.ComputeInfer)})
	}
	return part
}
