package compare

import (
	"encoding/json"
	"fmt"
	"time"

	"tuner/measure"
)

// perfFigure is a figure of the JSON of `tuner perf`. hi is null where requests were too few for it.
type perfFigure struct {
	Value float64  `json:"value"`
	Lo    float64  `json:"lo"`
	Hi    *float64 `json:"hi"`
}

// perfLatency has the latencies of a window.
type perfLatency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
}

type perfWindow struct {
	Throughput float64      `json:"throughput"`
	Requests   int          `json:"requests"`
	Latency    *perfLatency `json:"latency"`
}

type perfLevel struct {
	Load       measure.Load          `json:"load"`
	Begin      time.Time             `json:"begin"`
	Failure    string                `json:"failure"`
	Throughput *perfFigure           `json:"throughput"`
	Latency    map[string]perfFigure `json:"latency"`
	Windows    []perfWindow          `json:"windows"`
}

// servedKey is the key of the one configuration of a run of `tuner perf`: what the server serves.
const servedKey = "served"

func readPerf(path string, text []byte) (Run, error) {
	var d struct {
		Format   int    `json:"format"`
		Program  string `json:"program"`
		Machine  string `json:"machine"`
		Settings struct {
			Model    string `json:"model"`
			Protocol string `json:"protocol"`
			Arrivals string `json:"arrivals"`
			Batch    int    `json:"batch_size"`
		} `json:"settings"`
		Levels []perfLevel `json:"levels"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return Run{}, &NotARunError{path, err}
	}
	if d.Format != 1 {
		return Run{}, fmt.Errorf("%s: format is %d; this version of tuner reads format 1: run 'tuner perf' again", path, d.Format)
	}
	run := Run{Kind: Perf, Model: d.Settings.Model, Answer: fmt.Sprintf("%d levels", len(d.Levels)), Facts: map[string]string{
		"tuner": d.Program, factFingerprint: d.Machine, "protocol": d.Settings.Protocol, "model": d.Settings.Model, factRequests: d.Settings.Arrivals,
	}}
	served := Configuration{Name: d.Settings.Model, Key: servedKey, Description: "as the server served it", Points: []Point{}}
	for _, l := range d.Levels {
		if run.Created == "" {
			run.Created = created(l.Begin)
		}
		if l.Throughput != nil && l.Failure == "" {
			served.Points = append(served.Points, pointOf(l))
		}
	}
	run.Configurations = []Configuration{served}
	return run, nil
}

func pointOf(l perfLevel) Point {
	p := Point{Load: l.Load, Values: map[measure.Metric]Figure{measure.Throughput: l.Throughput.figure()}}
	for name, f := range l.Latency {
		metric := measure.Metric("latency_" + name)
		if name == "mean" {
			metric = measure.LatencyAvg
		}
		if _, ok := metric.Info(); ok {
			p.Values[metric] = f.figure()
		}
	}
	for _, w := range l.Windows {
		if w.Latency != nil && w.Requests > 0 {
			p.samples = append(p.samples, Sample{w.Requests, map[measure.Metric]float64{
				measure.Throughput: w.Throughput, measure.LatencyAvg: w.Latency.Mean, measure.LatencyP50: w.Latency.P50, measure.LatencyP99: w.Latency.P99,
			}})
		}
	}
	return p
}

// figure converts a figure. One without an upper end has no interval.
func (f perfFigure) figure() Figure {
	if f.Hi == nil {
		return Figure{f.Value, f.Value, f.Value}
	}
	return Figure{f.Value, f.Lo, *f.Hi}
}
